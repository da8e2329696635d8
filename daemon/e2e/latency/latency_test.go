package latency

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// record makes one of the given commit, each an hour after the one before.
func record(commit string, hour int, scale float64) *Record {
	return &Record{
		Commit: commit, Time: time.Unix(int64(hour)*3600, 0), Machine: `A & B <2 cores>`, Go: "go1", LoadBefore: 0.25, LoadAfter: 1.5,
		Rows: []Row{
			{Name: "warm <1+1>", What: "all of it", P50Ms: 2 * scale, P99Ms: 20 * scale, CPUMs: 1 * scale, Samples: 100},
			{Name: "touch", What: "more than nothing", P50Ms: -0.1, P99Ms: 0.5 * scale, Samples: 7},
		},
	}
}

// wellFormed fails the test unless text is XML, and returns how many elements of each name there are.
func wellFormed(t *testing.T, text string) map[string]int {
	t.Helper()
	d, seen := xml.NewDecoder(strings.NewReader(text)), map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return seen
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if e, ok := token.(xml.StartElement); ok {
			seen[e.Name.Local]++
		}
	}
}

func TestNewRow(t *testing.T) {
	samples := make([]float64, 100)
	for i := range samples {
		samples[i] = float64(100 - i)
	}
	if got, want := NewRow("n", "w", samples, 3), (Row{"n", "w", 50, 99, 3, 100}); got != want {
		t.Errorf("got %+v, not %+v", got, want)
	}
}

func TestTable(t *testing.T) {
	alone := record("new", 1, 1).Table(nil)
	for _, want := range []string{
		"Latencies of new", "A & B <2 cores>", "load 0.25 before and 1.50 after", "1970-01-01T01:00:00Z", "go1", "No other commit",
		"\n| warm <1+1> | 2.000 | 20.000 | 1.00 | 100 | – | – | – | all of it |\n",
		"\n| touch | -0.100 | 0.500 | – | 7 | – | – | – | more than nothing |\n",
	} {
		if !strings.Contains(alone, want) {
			t.Errorf("no %q in\n%s", want, alone)
		}
	}
	beside := record("new", 1, 1).Table(record("old", 0, 4))
	for _, want := range []string{"Ratios are to old", "| 100 | 0.25 | 0.25 | 0.25 | all", "| 7 | – | 0.25 | – | more"} {
		if !strings.Contains(beside, want) {
			t.Errorf("no %q in\n%s", want, beside)
		}
	}
}

func TestPlot(t *testing.T) {
	r := record("new", 1, 1)
	alone := r.Plot(nil)
	if got := wellFormed(t, alone); got["svg"] != 1 || got["rect"] != 1+len(r.Rows) {
		t.Errorf("%v in\n%s", got, alone)
	}
	beside := r.Plot(record("old", 0, 4))
	wellFormed(t, beside)
	for _, want := range []string{"warm &lt;1+1&gt;", "2.000 / 20.000 ×0.25", "touch", "p50 of old"} {
		if !strings.Contains(beside, want) {
			t.Errorf("no %q in\n%s", want, beside)
		}
	}
	if strings.Count(beside, "#e07b00") != len(r.Rows) || strings.Contains(alone, "#e07b00") {
		t.Errorf("marks of another commit:\n%s\n%s", alone, beside)
	}
	wellFormed(t, (&Record{}).Plot(nil))
}

func TestScale(t *testing.T) {
	s := record("new", 1, 1).scale(record("old", 0, 100)) // 0.5 to 200 ms
	if s != (scale{-1, 3}) {
		t.Fatalf("got %v", s)
	}
	for ms, want := range map[float64]float64{
		-1: plotLeft, 0.01: plotLeft, 0.1: plotLeft, 10: (plotLeft + plotRight) / 2, 1000: plotRight, 5000: plotRight,
	} {
		if got := s.x(ms); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v ms are at %v, not %v", ms, got, want)
		}
	}
}

// TestWrite: each commit leaves a record and is compared with the newest of another one, on the same machine and of a clean
// tree.
func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bench")
	elsewhere := record("elsewhere", 4, 1)
	elsewhere.Machine = "C"
	for _, step := range []struct {
		record *Record
		want   string
	}{
		{record("first", 1, 1), "No other commit"},
		{record("second", 3, 2), "Ratios are to first"},
		{record("older", 2, 1), "Ratios are to second"},
		{elsewhere, "No other commit"},
		{record("third-dirty", 5, 1), "Ratios are to second"},
		{record("third", 6, 1), "Ratios are to second"},
		{record("third", 7, 1), "Ratios are to second"},
	} {
		if err := Write(folder, step.record); err != nil {
			t.Fatal(err)
		}
		if got := read(t, folder, "latency.md"); !strings.Contains(got, step.want) {
			t.Errorf("after %s no %q in\n%s", step.record.Commit, step.want, got)
		}
		wellFormed(t, read(t, folder, "latency.svg"))
		if got := read(t, folder, "latency.json"); !strings.Contains(got, `"commit": "`+step.record.Commit+`"`) {
			t.Errorf("after %s:\n%s", step.record.Commit, got)
		}
	}
	kept, err := filepath.Glob(filepath.Join(folder, "latency-*.json"))
	if err != nil || len(kept) != 5 {
		t.Errorf("kept %v, %v", kept, err)
	}
	if err := os.WriteFile(kept[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, record("fourth", 8, 1)); err == nil || !strings.Contains(err.Error(), kept[0]) {
		t.Errorf("a broken record: %v", err)
	}
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
