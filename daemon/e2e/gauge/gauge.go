// Package gauge is what the benchmarks of daemon/e2e share: the CPU time of processes, quantiles, and the words for the
// machine that they ran on. It reads /proc. Its functions may be called by several goroutines at once.
package gauge

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Milliseconds is a duration as figures have it.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Quantile is the value that a share p of the list does not exceed; not a number for an empty list.
func Quantile(list []float64, p float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}

// Machine describes where this runs.
func Machine() string {
	model := "unknown processor"
	for line := range strings.Lines(read("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	var kib int
	fmt.Sscanf(read("/proc/meminfo"), "MemTotal: %d", &kib)
	kernel := strings.TrimSpace(read("/proc/sys/kernel/osrelease"))
	return fmt.Sprintf("%s, %d processors, %.0f GiB, Linux %s", model, runtime.NumCPU(), float64(kib)/(1<<20), kernel)
}

// Load is the kernel's mean of runnable processes over the last minute.
func Load() float64 {
	first, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	n, _ := strconv.ParseFloat(first, 64)
	return n
}

// read returns a small file of the kernel, or nothing.
func read(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}
