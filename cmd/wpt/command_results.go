package main

import (
	"maps"
	"slices"
	"strings"
)

// scoreCommand is wpt score.
type scoreCommand struct {
	Results   []string `arg:"" type:"existingfile" help:"Saved results; of a case in several the last counts."`
	ByFile    bool     `help:"Print a row for each file."`
	Tentative bool     `help:"Score the files that no standard has yet, instead of the others."`
}

// Run prints the table.
func (c *scoreCommand) Run(s streams) error {
	r, err := load(c.Results)
	if err != nil {
		return err
	}
	files := standard(r.Files, c.Tentative)
	if c.ByFile {
		printFiles(s.out, files)
		return nil
	}
	f, err := readFloors(floorsText)
	if err != nil {
		return err
	}
	printAreas(s.out, byArea(files), f)
	return nil
}

// failuresCommand is wpt failures.
type failuresCommand struct {
	Results   []string `arg:"" type:"existingfile" help:"Saved results; of a case in several the last counts."`
	Tentative bool     `help:"List the files that no standard has yet, instead of the others."`
}

// statuses of testharness.js.
var statuses = []string{"PASS", "FAIL", "TIMEOUT", "NOTRUN", "PRECONDITION_FAILED"}

// Run prints a line for each subtest that did not pass and each case that was not clean.
func (c *failuresCommand) Run(s streams) error {
	r, err := load(c.Results)
	if err != nil {
		return err
	}
	for _, f := range standard(r.Files, c.Tentative) {
		if f.Outcome != outcomeOK {
			printf(s.out, "%s\t%s\t%s\n", f.id(), f.Outcome, oneLine(f.Message))
		}
		for _, t := range f.Tests {
			if t.Status != pass && t.Status < len(statuses) {
				printf(s.out, "%s\t%s\t%s\t%s\n", f.id(), statuses[t.Status], oneLine(t.Name), oneLine(t.Message))
			}
		}
	}
	return nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// diffCommand is wpt diff.
type diffCommand struct {
	First  string `arg:"" type:"existingfile" help:"Saved results."`
	Second string `arg:"" type:"existingfile" help:"Saved results."`
}

// Run prints the differences.
func (c *diffCommand) Run(s streams) error {
	first, err := passing(c.First)
	if err != nil {
		return err
	}
	second, err := passing(c.Second)
	if err != nil {
		return err
	}
	for _, line := range slices.Sorted(maps.Keys(first)) {
		if !second[line] {
			printf(s.out, "only first\t%s\n", line)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(second)) {
		if !first[line] {
			printf(s.out, "only second\t%s\n", line)
		}
	}
	return nil
}

// passing are the subtests that pass in saved results.
func passing(path string) (map[string]bool, error) {
	r, err := load([]string{path})
	if err != nil {
		return nil, err
	}
	lines := map[string]bool{}
	for _, f := range r.Files {
		for name, t := range f.named() {
			if t.Status == pass {
				lines[f.id()+"\t"+oneLine(name)] = true
			}
		}
	}
	return lines, nil
}

// listCommand is wpt list.
type listCommand struct{ choice }

// Run prints the table.
func (c *listCommand) Run(s streams) error {
	_, cases, err := c.cases()
	if err != nil {
		return err
	}
	printf(s.out, "| area | files | of them tentative | cases |\n|---|---:|---:|---:|\n")
	for _, a := range areas {
		files, count := map[string]bool{}, 0
		for _, t := range cases {
			if t.Area == a.Name {
				files[t.Path] = t.Tentative
				count++
			}
		}
		if count > 0 {
			tentative := 0
			for _, is := range files {
				if is {
					tentative++
				}
			}
			printf(s.out, "| %s | %d | %d | %d |\n", a.Name, len(files), tentative, count)
		}
	}
	return nil
}
