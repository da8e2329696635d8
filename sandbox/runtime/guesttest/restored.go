package guesttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/executord/executord/sandbox/entry"
	"github.com/executord/executord/sandbox/runtime"
	"github.com/executord/executord/sandbox/v8"
)

// Arguments that make a test binary something else, see Main.
const (
	makeCommand     = "make-snapshot"
	restoredCommand = "run-restored"
)

// job is what a process that runs restored isolates reads.
type job struct {
	Blob     []byte
	Programs []planned
}

type planned struct {
	Program Program
	Source  string // "" where the program cannot be read
	Call    bool
}

// Restored is what came of a program in an isolate restored from the snapshot. Places in it are those of the module text.
type Restored struct {
	Value string
	Logs  []string
	Err   string
}

// ExecuteRestored runs each of the programs in an isolate that is restored from the library's snapshot. The result of
// one that cannot be read is empty.
func ExecuteRestored(t testing.TB, programs []Program) []Restored {
	t.Helper()
	j := job{Blob: self(t, makeCommand, nil)}
	for _, p := range programs {
		pl := planned{Program: p}
		if program, err := entry.Plan(Analyze, p.Code, p.Form); err == nil {
			pl.Source, pl.Call = program.Source, program.Call()
		}
		j.Programs = append(j.Programs, pl)
	}
	in, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	var out []Restored
	if err := json.Unmarshal(self(t, restoredCommand, in), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// SnapshotSize is the size of the library's snapshot in bytes.
func SnapshotSize(t testing.TB) int { return len(self(t, makeCommand, nil)) }

func self(t testing.TB, command string, in []byte) []byte {
	t.Helper()
	cmd := exec.Command(os.Args[0], command)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot %s: %v", command, err)
	}
	return out
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func makeSnapshot() error {
	blob, err := v8.MakeSnapshot(runtime.Source(), runtime.Warm())
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(blob)
	return err
}

func runRestored() error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return err
	}
	snapshot := v8.LoadSnapshot(j.Blob)
	results := []Restored{}
	for _, p := range j.Programs {
		var r Restored
		if p.Source != "" {
			h := &host{modules: p.Program.Modules}
			o, err := h.runIn(v8.Config{Snapshot: snapshot}, p.Source, p.Call, p.Program)
			if err != nil {
				return err
			}
			r.Value, r.Logs = o.Value, o.Logs
			if o.Err != nil {
				r.Err = o.Err.Error()
			}
		}
		results = append(results, r)
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}
