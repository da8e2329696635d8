package settings

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is what is wrong with one setting.
type Fault struct {
	Name     string // of the flag
	Variable string
	Value    string // as it was given, "set" where it is a secret
	Origin   Origin
	Reason   string
}

// Error names the flag, the variable, the value and where it is from.
func (f *Fault) Error() string {
	given := f.Origin.String()
	if given != "" {
		given = ", " + given
	}
	return fmt.Sprintf("--%s (%s) is %.200q%s: %s", f.Name, f.Variable, f.Value, given, f.Reason)
}

// Faults are all faults of one look at the settings. Each is a *Fault, or says what cannot be read.
type Faults []error

// Error has a line for each.
func (f Faults) Error() string {
	if len(f) == 1 {
		return "cannot use these settings: " + f[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "cannot use these settings, for %d reasons:", len(f))
	for _, err := range f {
		b.WriteString("\n  " + err.Error())
	}
	return b.String()
}

// Unwrap is for errors.Is and errors.As.
func (f Faults) Unwrap() []error { return f }

// Source is what a value is from. Each comes before those that follow it.
type Source string

// The sources.
const (
	Flag     Source = "flag"
	Variable Source = "variable"
	File     Source = "file"
	Default  Source = "default"
)

// Origin is where exactly a value is from.
type Origin struct {
	Source Source
	File   string // with source File
	Line   int    // in the file, from 1
}

// String is empty where nobody knows.
func (o Origin) String() string {
	switch o.Source {
	case Flag:
		return "given as the flag"
	case Variable:
		return "given as the variable"
	case File:
		return fmt.Sprintf("given in %s, line %d", o.File, o.Line)
	case Default:
		return "which is the default"
	}
	return ""
}

// didYouMean suggests the name that is nearest to a wrong one; empty when none is near.
func didYouMean(wrong string, names []string) string {
	best, least := "", max(2, len(wrong)/4)+1
	for _, name := range names {
		if n := distance(wrong, name); n < least {
			best, least = name, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is how many bytes have to be inserted, removed or replaced to make b of a (Levenshtein).
func distance(a, b string) int {
	const most = 64 // of a name that is worth a look
	if len(a) > most || len(b) > most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = slices.Min([]int{replaced, row[j] + 1, diagonal + 1})
		}
	}
	return row[len(b)]
}
