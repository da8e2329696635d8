package latency

import (
	"fmt"
	"strings"
	"time"
)

// Table is the record in Markdown, with ratios to another one, which may be nil.
func (r *Record) Table(before *Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Latencies of %s\n\n%s\n\n", r.Commit, r.conditions())
	if before == nil {
		b.WriteString("No other commit was measured on this machine.\n")
	} else {
		fmt.Fprintf(&b, "Ratios are to %s, %s; below 1 is faster.\n", before.Commit, before.conditions())
	}
	b.WriteString("\n| | p50 ms | p99 ms | CPU ms | samples | p50 ratio | p99 ratio | CPU ratio | from when to when |\n" +
		"|---|---:|---:|---:|---:|---:|---:|---:|---|\n")
	for i := range r.Rows {
		row := &r.Rows[i]
		then := before.row(row.Name)
		if then == nil {
			then = &Row{}
		}
		cpu := "–"
		if row.CPUMs != 0 {
			cpu = fmt.Sprintf("%.2f", row.CPUMs)
		}
		fmt.Fprintf(&b, "| %s | %.3f | %.3f | %s | %d | %s | %s | %s | %s |\n", row.Name, row.P50Ms, row.P99Ms, cpu, row.Samples,
			ratio(row.P50Ms, then.P50Ms), ratio(row.P99Ms, then.P99Ms), ratio(row.CPUMs, then.CPUMs), row.What)
	}
	return b.String()
}

// conditions says where and when it was measured.
func (r *Record) conditions() string {
	return fmt.Sprintf("measured %s on %s; load %.2f before and %.2f after, this run included; %s",
		r.Time.UTC().Format(time.RFC3339), r.Machine, r.LoadBefore, r.LoadAfter, r.Go)
}
