package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

//go:embed data/peers.json
var peersText []byte

//go:embed data/floors.json
var floorsText []byte

// peers are the figures of other runtimes at one revision of the suite, by area.
var peers = func() (p struct {
	Revision string            `json:"revision"`
	Date     string            `json:"date"` // of the revision
	Runtimes map[string]string `json:"runtimes"`
	Areas    map[string]peer   `json:"areas"`
},
) {
	if err := json.Unmarshal(peersText, &p); err != nil {
		panic(err) // the file is part of this program
	}
	return p
}()

// peer has the passes of other runtimes in one area, and the subtests that any of them saw.
type peer struct {
	Subtests int            `json:"subtests"`
	Passes   map[string]int `json:"passes"`
}

// best is the runtime that passes most, empty where none was measured.
func (p peer) best() (name string, passes int) {
	for n, k := range p.Passes {
		if name == "" || k > passes || k == passes && n < name {
			name, passes = n, k
		}
	}
	return name, passes
}

// floors are the passes that each area has to keep.
type floors map[string]int

func readFloors(text []byte) (f floors, err error) {
	err = json.Unmarshal(text, &f)
	return f, err
}

// row is the score of one area or one file.
type row struct {
	name             string
	files            map[string]bool
	passes, subtests int
	ends             map[string]int // cases by outcome
}

func (r *row) add(f fileResult) {
	r.files[f.Path] = true
	r.passes += f.passes()
	r.subtests += len(f.Tests)
	r.ends[f.Outcome]++
}

// lost are the cases that came to no end of their own.
func (r *row) lost() int { return r.ends[outcomeCrash] + r.ends[outcomeHang] + r.ends[outcomeFault] }

// percent is of all subtests. A file that did not start counts with those that others saw there.
func (r *row) percent() float64 {
	if r.subtests == 0 {
		return 0
	}
	return 100 * float64(r.passes) / float64(r.subtests)
}

// group sums up results by key, in the order in which keys come.
func group(files []fileResult, key func(fileResult) string) (rows []*row) {
	at := map[string]*row{}
	for _, f := range files {
		k := key(f)
		if at[k] == nil {
			at[k] = &row{name: k, files: map[string]bool{}, ends: map[string]int{}}
			rows = append(rows, at[k])
		}
		at[k].add(f)
	}
	return rows
}

// standard leaves the files out that no standard has yet, or keeps only those.
func standard(files []fileResult, tentative bool) []fileResult {
	return slices.DeleteFunc(slices.Clone(files), func(f fileResult) bool { return f.Tentative != tentative })
}

// byArea are the scores of areas in the order of tables.
func byArea(files []fileResult) []*row {
	rows := group(files, func(f fileResult) string { return f.Area })
	order := func(r *row) int {
		return slices.IndexFunc(areas, func(a area) bool { return a.Name == r.name })
	}
	slices.SortStableFunc(rows, func(a, b *row) int { return order(a) - order(b) })
	return rows
}

// printAreas prints the table of areas.
func printAreas(w io.Writer, rows []*row, f floors) {
	printf(w, "| area | files | passes | subtests | %% | best peer | floor | crashes | hangs | faults |\n")
	printf(w, "|---|---:|---:|---:|---:|---|---:|---:|---:|---:|\n")
	sum := row{ends: map[string]int{}}
	var percents float64
	files := 0
	for _, r := range rows {
		p := peers.Areas[r.name]
		r.subtests = max(r.subtests, p.Subtests)
		name, passes := p.best()
		best := "–"
		if name != "" {
			best = fmt.Sprintf("%d (%s)", passes, name)
		}
		printf(w, "| %s | %d | %d | %d | %.1f | %s | %s | %d | %d | %d |\n", r.name, len(r.files), r.passes, r.subtests,
			r.percent(), best, f.text(r.name), r.ends[outcomeCrash], r.ends[outcomeHang], r.ends[outcomeFault])
		files += len(r.files)
		sum.passes, sum.subtests = sum.passes+r.passes, sum.subtests+r.subtests
		percents += r.percent()
		for end, n := range r.ends {
			sum.ends[end] += n
		}
	}
	printf(w, "| **sum** | %d | %d | %d | %.1f | | | %d | %d | %d |\n", files, sum.passes, sum.subtests, sum.percent(),
		sum.ends[outcomeCrash], sum.ends[outcomeHang], sum.ends[outcomeFault])
	if len(rows) > 0 {
		printf(w, "| **mean of the areas** | | | | %.1f | | | | | |\n", percents/float64(len(rows)))
	}
}

func (f floors) text(area string) string {
	if floor, ok := f[area]; ok {
		return fmt.Sprint(floor)
	}
	return "–"
}

// printFiles prints the table of files.
func printFiles(w io.Writer, files []fileResult) {
	printf(w, "| file | passes | subtests | %% | outcomes |\n|---|---:|---:|---:|---|\n")
	for _, r := range group(files, func(f fileResult) string { return f.Path }) {
		var ends []string
		for end, n := range r.ends {
			ends = append(ends, fmt.Sprintf("%d %s", n, end))
		}
		slices.Sort(ends)
		printf(w, "| %s | %d | %d | %.1f | %s |\n", r.name, r.passes, r.subtests, r.percent(), strings.Join(ends, ", "))
	}
}

// fallen names what is worse than it was: areas under their floors, and cases that came to no end of their own.
func fallen(rows []*row, f floors) (faults []string) {
	for _, r := range rows {
		if floor, ok := f[r.name]; ok && r.passes < floor {
			faults = append(faults, fmt.Sprintf("%s: %d passes, %d before", r.name, r.passes, floor))
		}
		if r.lost() > 0 {
			faults = append(faults, fmt.Sprintf("%s: %d cases crashed, hung or failed to run", r.name, r.lost()))
		}
	}
	return faults
}

func printf(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
