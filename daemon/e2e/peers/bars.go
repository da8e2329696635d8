package main

import (
	"fmt"

	"github.com/executord/executord/daemon/e2e/gauge"
)

// quantity is a measure of an engine that a bar is about.
type quantity string

const (
	cpu     quantity = "CPU"          // ms an execution, median of the turns
	wallP50 quantity = "wall p50"     // ms
	rate    quantity = "executions/s" // with inFlight executions at once, median of the turns
)

// bar is what executord has to reach: its quantity is at most so many times the peer's, or at least where more is better.
type bar struct {
	peer     string
	quantity quantity
	program  string
	factor   float64
}

// bars are all there are: some beside isolated-vm, and every row beside workerd.
func bars() []bar {
	list := []bar{
		{"isolated-vm", cpu, onePlusOne, 1.2},
		{"isolated-vm", cpu, oneCall, 1.2},
		{"isolated-vm", cpu, hundredCalls, 1.0},
		{"isolated-vm", cpu, bytesIn, 1.0},
		{"isolated-vm", wallP50, onePlusOne, 0.35},
		{"isolated-vm", rate, oneCall, 1.2},
	}
	for _, q := range []quantity{cpu, wallP50} {
		for _, p := range programs {
			list = append(list, bar{"workerd", q, p.name, 0.35})
		}
	}
	return append(list, bar{"workerd", rate, oneCall, 1 / 0.35})
}

// verdict compares what the bar asks with what was measured.
func (b bar) verdict(f *figures) (got float64, met bool) {
	got = f.value(b.quantity, cell{"executord", b.program}) / f.value(b.quantity, cell{b.peer, b.program})
	if b.quantity == rate {
		return got, got >= b.factor
	}
	return got, got <= b.factor
}

func (b bar) needed() string {
	if b.quantity == rate {
		return fmt.Sprintf(">= %.2f", b.factor)
	}
	return fmt.Sprintf("<= %.2f", b.factor)
}

// value is the figure that stands for a cell; not a number where it was not measured.
func (f *figures) value(q quantity, c cell) float64 {
	switch q {
	case cpu:
		return gauge.Quantile(f.cpuMs[c], 0.5)
	case wallP50:
		return gauge.Quantile(f.wallMs[c], 0.5)
	default:
		return gauge.Quantile(f.rate[c], 0.5)
	}
}
