package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }

// sample is the area of the tree in testdata.
var sample = area{
	Name: "sample", Paths: []string{"sample", "sample/page.window.js"}, Exclude: []string{"/excluded"},
	Patch: map[string][][2]string{"sample/page.window.js": {{"a document", "a program"}}},
}

func sampleTree() fs.FS { return os.DirFS("testdata/tree") }

func TestCollect(t *testing.T) {
	cases, err := collect(sampleTree(), []area{sample}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range cases {
		ids = append(ids, c.id())
	}
	want := []string{
		"/sample/broken.any.js", "/sample/crash.any.js", "/sample/hang.any.js", "/sample/kinds.any.js",
		"/sample/later.tentative.any.js", "/sample/slow.any.js", "/sample/strict.any.js?one", "/sample/strict.any.js?two",
		"/sample/page.window.js",
	}
	if !slices.Equal(ids, want) {
		t.Errorf("cases %q, want %q", ids, want)
	}
	if c := cases[2]; c.Long || c.Tentative || c.Scripts != nil {
		t.Errorf("%+v", c)
	}
	if c := cases[3]; !c.Long || !slices.Equal(c.Scripts, []string{"/sample/helper.js", "/sample/data/second.js"}) {
		t.Errorf("%+v", c)
	}
	if !cases[4].Tentative {
		t.Error("a tentative file is taken for standard")
	}
	cases, err = collect(sampleTree(), []area{sample}, regexp.MustCompile(`\?two$`))
	if err != nil || len(cases) != 1 || cases[0].Search != "?two" {
		t.Error(cases, err)
	}
	if _, err := collect(sampleTree(), []area{{Name: "x", Paths: []string{"missing"}}}, nil); err == nil {
		t.Error("a folder that is not there is no error")
	}
}

// TestRun runs the tree in real workers, one of which dies on command.
func TestRun(t *testing.T) {
	cases, err := collect(sampleTree(), []area{sample}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPool(t.Context(), testbin.FaultyWorker(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := runner{maker: maker{tree: sampleTree(), short: time.Second}, executor: p, grace: 2 * time.Second}
	var progress bytes.Buffer
	results := r.runAll(t.Context(), cases, 2, &progress)
	want := map[string]struct {
		outcome        string
		passes, others int
		message        string
	}{
		"/sample/broken.any.js":          {outcomeError, 1, 0, "load: RangeError: at the top"},
		"/sample/crash.any.js":           {outcomeCrash, 0, 0, "worker_crashed"},
		"/sample/hang.any.js":            {outcomeHang, 0, 0, "timeout"},
		"/sample/kinds.any.js":           {outcomeOK, 8, 1, ""},
		"/sample/later.tentative.any.js": {outcomeOK, 1, 0, ""},
		"/sample/slow.any.js":            {outcomeTimeout, 1, 1, "timed out"},
		"/sample/strict.any.js?one":      {outcomeOK, 2, 0, ""},
		"/sample/strict.any.js?two":      {outcomeOK, 1, 1, ""},
		"/sample/page.window.js":         {outcomeOK, 1, 0, ""},
	}
	for _, f := range results {
		w := want[f.id()]
		if f.Outcome != w.outcome || f.passes() != w.passes || len(f.Tests)-f.passes() != w.others || !strings.Contains(f.Message, w.message) {
			t.Errorf("%s: %s, %d of %d, %q %v", f.id(), f.Outcome, f.passes(), len(f.Tests), f.Message, f.Tests)
		}
		if !strings.Contains(progress.String(), f.id()) {
			t.Errorf("no word of %s", f.id())
		}
	}

	t.Run("again", func(t *testing.T) {
		var again bytes.Buffer
		few := []testCase{cases[0], cases[5], cases[3]} // broken, slow, kinds
		results := []fileResult{{Outcome: outcomeHang}, {Outcome: outcomeTimeout, Tests: make([]subtest, 9)}, {Outcome: outcomeOK}}
		r.again(t.Context(), few, results, &again)
		if results[0].Outcome != outcomeError || len(results[1].Tests) != 9 || len(results[2].Tests) != 0 {
			t.Errorf("%+v", results)
		}
		if n := strings.Count(again.String(), "\n"); n != 2 {
			t.Errorf("%d cases ran again: %s", n, again.String())
		}
	})

	t.Run("stop", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if results := r.runAll(ctx, cases, 2, io.Discard); len(results) != len(cases) || results[8].Outcome == outcomeOK {
			t.Errorf("%+v", results)
		}
	})
}

func TestPrograms(t *testing.T) {
	m := maker{tree: sampleTree(), short: time.Second}
	if _, err := m.make(testCase{Path: "/sample/kinds.any.js", Scripts: []string{"/sample/missing.js"}}); err == nil {
		t.Error("a missing helper is no error")
	}
	scripts, err := m.scripts(testCase{Path: "/sample/kinds.any.js"})
	if err != nil {
		t.Fatal(err)
	}
	files := m.dataFiles(testCase{Path: "/sample/kinds.any.js"}, scripts)
	if len(files) != 1 || *files["/sample/data/answer.json"].Text == "" {
		t.Errorf("%v", files)
	}
}

// TestReport checks that saved results come back as they were, and that a later run of a case wins.
func TestReport(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "1"), filepath.Join(t.TempDir(), "2")
	r := report{Revision: "abc", Files: []fileResult{
		{Area: "url", Path: "/a.any.js", Search: "?x", Outcome: outcomeOK, MS: 3, Tests: []subtest{{"one", 0, ""}, {"two", 1, "why"}, {"two", 0, ""}}},
		{Area: "url", Path: "/b.any.js", Outcome: outcomeCrash, Message: "gone", Tests: []subtest{}},
	}}
	if err := r.save(first); err != nil {
		t.Fatal(err)
	}
	if err := (&report{Files: []fileResult{{Area: "url", Path: "/b.any.js", Outcome: outcomeOK}}}).save(second); err != nil {
		t.Fatal(err)
	}
	back, err := load([]string{first})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := quote(back), quote(r); a != b {
		t.Errorf("%s\n%s", a, b)
	}
	if names := slices.Sorted(maps.Keys(back.Files[0].named())); !slices.Equal(names, []string{"one", "two", "two #2"}) {
		t.Error(names)
	}
	both, err := load([]string{first, second})
	if err != nil || len(both.Files) != 2 || both.Files[1].Outcome != outcomeOK {
		t.Error(both, err)
	}
	if _, err := load([]string{"testdata/tree/resources/testharness.js"}); err == nil {
		t.Error("a script is taken for results")
	}
}

const wantTable = `| area | files | passes | subtests | % | best peer | floor | crashes | hangs | faults |
|---|---:|---:|---:|---:|---|---:|---:|---:|---:|
| timers | 2 | 2 | 10 | 20.0 | 9 (deno) | 3 | 0 | 0 | 0 |
| sample | 1 | 0 | 0 | 0.0 | – | – | 1 | 0 | 0 |
| **sum** | 3 | 2 | 10 | 20.0 | | | 1 | 0 | 0 |
| **mean of the areas** | | | | 10.0 | | | | | |
`

func TestScore(t *testing.T) {
	withArea(t, sample)
	files := []fileResult{
		{Area: "sample", Path: "/c", Outcome: outcomeCrash},
		{Area: "timers", Path: "/a", Search: "?1", Outcome: outcomeOK, Tests: []subtest{{"x", 0, ""}, {"y", 1, ""}}},
		{Area: "timers", Path: "/a", Search: "?2", Outcome: outcomeTimeout},
		{Area: "timers", Path: "/b", Outcome: outcomeOK, Tests: []subtest{{"x", 0, ""}}},
		{Area: "timers", Path: "/d", Tentative: true, Outcome: outcomeOK, Tests: []subtest{{"x", 0, ""}}},
	}
	var out bytes.Buffer
	f := floors{"timers": 3}
	rows := byArea(standard(files, false))
	printAreas(&out, rows, f)
	if out.String() != wantTable {
		t.Errorf("%s\nwant\n%s", out.String(), wantTable)
	}
	want := []string{"timers: 2 passes, 3 before", "sample: 1 cases crashed, hung or failed to run"}
	if got := fallen(rows, f); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := fallen(rows[:1], floors{"timers": 2}); len(got) != 0 {
		t.Errorf("%q", got)
	}
	out.Reset()
	printFiles(&out, standard(files, false))
	if !strings.Contains(out.String(), "| /a | 1 | 2 | 50.0 | 1 ok, 1 timeout |\n") {
		t.Error(out.String())
	}

	path := filepath.Join(t.TempDir(), "floors.json")
	if err := os.WriteFile(path, []byte(`{"timers": 1, "url": 5}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := record(path, rows); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	if got, err := readFloors(text); err != nil || !maps.Equal(got, floors{"sample": 0, "timers": 2, "url": 5}) {
		t.Errorf("%s %v", text, err)
	}
}

// TestData checks that the files of data fit each other.
func TestData(t *testing.T) {
	known := map[string]bool{}
	for _, a := range areas {
		if known[a.Name] || groups[a.Name] != nil {
			t.Errorf("two areas are called %s", a.Name)
		}
		known[a.Name] = true
		for _, e := range a.Exclude {
			if _, err := regexp.Compile(e); err != nil {
				t.Error(err)
			}
		}
	}
	for name, p := range peers.Areas {
		if _, passes := p.best(); !known[name] || passes > p.Subtests || passes == 0 && name != "observable" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	f, err := readFloors(floorsText)
	if err != nil {
		t.Fatal(err)
	}
	for name := range f {
		if !known[name] {
			t.Errorf("there is a floor for %s", name)
		}
	}
	if list, err := pick([]string{"ecma429", "url"}); err != nil || len(list) < 20 || list[0].Name != "url" || list[1].Name == "url" {
		t.Error(list, err)
	}
	if _, err := pick([]string{"nowhere"}); err == nil {
		t.Error("an area that is not there is no error")
	}
}

// TestCommands runs the command line on the tree.
func TestCommands(t *testing.T) {
	withArea(t, sample)
	saved := filepath.Join(t.TempDir(), "r.json")
	const tree = "testdata/tree"
	for _, c := range []struct {
		args  []string
		fails bool
		want  string // in what it prints
	}{
		{[]string{"run", "--wpt", tree, "--areas", "sample", "--worker", testbin.Worker(t), "--out", saved, "--only", "strict|kinds"}, false, "| sample | 2 | 11 | 13 | 84.6 | – | – | 0 | 0 | 0 |"},
		{[]string{"run", "--wpt", tree, "--areas", "nowhere", "--worker", testbin.Worker(t)}, true, ""},
		{[]string{"score", saved}, false, "| sample | 2 | 11 | 13 | 84.6 |"},
		{[]string{"score", "--by-file", saved}, false, "| /sample/strict.any.js | 3 | 4 | 75.0 | 2 ok |"},
		{[]string{"failures", saved}, false, "/sample/kinds.any.js\tFAIL\tfails\tError: as meant\n"},
		{[]string{"diff", saved, saved}, false, ""},
		{[]string{"list", "--wpt", tree, "--areas", "sample"}, false, "| sample | 8 | 1 | 9 |"},
		{[]string{"program", "--wpt", tree, "sample/strict.any.js?two"}, false, `"search":"?two"`},
		{[]string{"program", "--wpt", tree, "sample/worker.any.js"}, true, ""},
	} {
		var out bytes.Buffer
		if err := execute(t.Context(), c.args, streams{&out, io.Discard}); (err != nil) != c.fails || !strings.Contains(out.String(), c.want) {
			t.Errorf("wpt %v: %v\n%s", c.args, err, out.String())
		}
	}
}

func TestLay(t *testing.T) {
	repository, out := t.TempDir(), t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", repository, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, text)
		}
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(repository, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	write("url/a.any.js", "one\n")
	write("url/deep/b", "")
	write("elsewhere/c", "no")
	if err := os.Symlink("/etc/passwd", filepath.Join(repository, "url", "link")); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "-q", "-m", "files")
	lay := layCommand{Git: filepath.Join(repository, ".git"), Rev: "HEAD", Out: out, Paths: []string{"url"}}
	if err := lay.Run(t.Context(), streams{io.Discard, io.Discard}); err != nil {
		t.Fatal(err)
	}
	var found []string
	err := fs.WalkDir(os.DirFS(out), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, p)
		}
		return err
	})
	if err != nil || !slices.Equal(found, []string{"REVISION", "url/a.any.js", "url/deep/b"}) {
		t.Error(found, err)
	}
	if text, err := os.ReadFile(filepath.Join(out, "url/a.any.js")); err != nil || string(text) != "one\n" {
		t.Errorf("%q %v", text, err)
	}
	if revision(os.DirFS(out)) == "" {
		t.Error("the revision is not written down")
	}
	lay.Rev = "nothing"
	if err := lay.Run(t.Context(), streams{io.Discard, io.Discard}); err == nil {
		t.Error("a commit that is not there is no error")
	}
}

// withArea adds an area for the time of a test.
func withArea(t *testing.T, a area) {
	before := areas
	t.Cleanup(func() { areas = before })
	areas = append(slices.Clone(areas), a)
}
