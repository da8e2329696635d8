package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Outcomes of one case. A crash, a hang or a fault gives no subtests.
const (
	outcomeOK      = "ok"
	outcomeError   = "error"   // of the harness
	outcomeTimeout = "timeout" // of the harness
	outcomeCrash   = "crash"   // the worker died
	outcomeHang    = "hang"    // a clock of the sandbox ended the program
	outcomeFault   = "fault"   // anything else
)

// report is what a run found, as it is saved.
type report struct {
	Revision string       `json:"revision,omitempty"` // of the suite
	Files    []fileResult `json:"files"`
}

// fileResult is what came of one case.
type fileResult struct {
	Area      string    `json:"area"`
	Path      string    `json:"path"`
	Search    string    `json:"search,omitempty"`
	Tentative bool      `json:"tentative,omitempty"`
	Outcome   string    `json:"outcome"`
	Message   string    `json:"message,omitempty"`
	MS        int64     `json:"ms"`
	Tests     []subtest `json:"tests"`
}

func (f *fileResult) id() string { return f.Path + f.Search }

func (f *fileResult) passes() (n int) {
	for _, t := range f.Tests {
		if t.Status == pass {
			n++
		}
	}
	return n
}

func (f *fileResult) summary() string {
	message, _, _ := strings.Cut(f.Message, "\n")
	return fmt.Sprintf("%-7s %5d/%-5d %6dms %s %s", f.Outcome, f.passes(), len(f.Tests), f.MS, f.id(), message)
}

// pass is the status of a subtest that passed.
const pass = 0

// subtest is saved as [name, status, message], the message only when it did not pass.
type subtest struct {
	Name    string
	Status  int // of testharness.js: 0 pass, 1 fail, 2 time-out, 3 not run, 4 precondition failed
	Message string
}

// MarshalJSON writes the tuple.
func (s subtest) MarshalJSON() ([]byte, error) {
	if s.Status == pass {
		return json.Marshal([]any{s.Name, s.Status})
	}
	return json.Marshal([]any{s.Name, s.Status, s.Message})
}

// UnmarshalJSON reads the tuple.
func (s *subtest) UnmarshalJSON(text []byte) error {
	var items []json.RawMessage
	if err := json.Unmarshal(text, &items); err != nil {
		return err
	}
	for i, into := range []any{&s.Name, &s.Status, &s.Message} {
		if i == len(items) {
			break
		}
		if err := json.Unmarshal(items[i], into); err != nil {
			return err
		}
	}
	return nil
}

// save writes a report, a line for each case.
func (r *report) save(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte(`},{"area"`), []byte("},\n{\"area\""))
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// load reads reports and puts their cases together; of a case that is there twice the last counts.
func load(paths []string) (*report, error) {
	all := &report{}
	at := map[string]int{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var r report
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", path, err)
		}
		all.Revision = r.Revision
		for _, f := range r.Files {
			if i, known := at[f.id()]; known {
				all.Files[i] = f
				continue
			}
			at[f.id()] = len(all.Files)
			all.Files = append(all.Files, f)
		}
	}
	return all, nil
}

// named are the subtests of a file by name; of a name that is there twice the second gets a number.
func (f *fileResult) named() map[string]subtest {
	byName := map[string]subtest{}
	seen := map[string]int{}
	for _, t := range f.Tests {
		name := t.Name
		if seen[name]++; seen[name] > 1 {
			name += " #" + strconv.Itoa(seen[name])
		}
		byName[name] = t
	}
	return byName
}
