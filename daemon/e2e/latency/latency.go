// Package latency keeps and shows what `make bench-latency` measured: a table, a plot, and ratios to an earlier commit. It
// measures nothing itself; daemon/e2e TestLatency does. Functions of one folder must not be called at once.
package latency

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/executord/executord/daemon/e2e/gauge"
)

// Record is one run of the benchmark.
type Record struct {
	Commit     string    `json:"commit"` // short; it ends in dirtySuffix where the tree had changes
	Time       time.Time `json:"time"`
	Machine    string    `json:"machine"` // processor, how many, memory, kernel
	Go         string    `json:"go"`
	LoadBefore float64   `json:"loadBefore"` // mean of runnable processes over a minute
	LoadAfter  float64   `json:"loadAfter"`
	Rows       []Row     `json:"rows"`
}

// dirtySuffix is what git describe appends.
const dirtySuffix = "-dirty"

// Row is one latency.
type Row struct {
	Name    string  `json:"name"`
	What    string  `json:"what"` // from when to when
	P50Ms   float64 `json:"p50Ms"`
	P99Ms   float64 `json:"p99Ms"`
	CPUMs   float64 `json:"cpuMs,omitempty"` // of the service and its workers for one; 0 where it was not measured
	Samples int     `json:"samples"`
}

// NewRow makes a row of what was sampled, in milliseconds; at least one sample.
func NewRow(name, what string, samplesMs []float64, cpuMs float64) Row {
	return Row{
		Name: name, What: what, CPUMs: cpuMs, Samples: len(samplesMs),
		P50Ms: gauge.Quantile(samplesMs, 0.5), P99Ms: gauge.Quantile(samplesMs, 0.99),
	}
}

// Write puts latency.json, latency.md and latency.svg into the folder, which it makes, and what a clean tree measured also
// into latency-COMMIT.json, to be compared with later.
func Write(folder string, r *Record) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	before, err := previous(folder, r)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"latency.json": append(text, '\n'),
		"latency.md":   []byte(r.Table(before)),
		"latency.svg":  []byte(r.Plot(before)),
	}
	if !strings.HasSuffix(r.Commit, dirtySuffix) {
		files[fmt.Sprintf("latency-%s.json", r.Commit)] = files["latency.json"]
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// previous is the newest record of another commit on the same machine; nil where there is none.
func previous(folder string, r *Record) (newest *Record, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "latency-*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		var other Record
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &other)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		if other.Commit != r.Commit && other.Machine == r.Machine && (newest == nil || other.Time.After(newest.Time)) {
			newest = &other
		}
	}
	return newest, nil
}

// row returns the row of a name; nil where there is none, or no record.
func (r *Record) row(name string) *Row {
	if r == nil {
		return nil
	}
	for i := range r.Rows {
		if r.Rows[i].Name == name {
			return &r.Rows[i]
		}
	}
	return nil
}

// ratio says how many times before now is; a dash where one of them says nothing.
func ratio(now, before float64) string {
	if now <= 0 || before <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", now/before)
}
