package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/executord/executord/daemon/e2e/gauge"
)

const how = `CPU is user and system time of all threads: executord's of the service and all its workers, workerd's of its process,
isolated-vm's and quickjs's of the node process that they and the tools live in. The clients of executord and of
workerd, which answer executord's tool calls and ask workerd over HTTP, are not counted; "client" is what executord's took.
`

// writeReport prints all figures, the ratios, and which bars were met. The first engine is executord.
func writeReport(out io.Writer, engines []*engine, f *figures, loads []float64, least floor) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "executord beside its peers\n\n")
	fmt.Fprintf(w, "machine\t%s\n", gauge.Machine())
	fmt.Fprintf(w, "load\t%.2f at the start, %.2f at the end, at most %.2f (mean of 1 minute, this run included)\n",
		loads[0], loads[len(loads)-1], slices.Max(loads))
	for _, e := range engines {
		fmt.Fprintf(w, "%s\t%s\n", e.name, e.version)
	}
	fmt.Fprintf(w, "method\t%d turns of each engine with each program, interleaved\n\n%s\n", f.turns, how)
	writeCPU(w, engines, f)
	writeWall(w, engines, f)
	writeRate(w, engines, f)
	if len(engines) > 1 {
		writeBars(w, f)
	}
	writeFloor(w, f, least)
	return w.Flush()
}

func writeCPU(w io.Writer, engines []*engine, f *figures) {
	fmt.Fprintf(w, "CPU ms of an execution, one after the other, median of the turns\n\n%s\tclient%s\n", head(engines), ratios(engines))
	for _, p := range programs {
		row(w, engines, f, cpu, p.name, fmt.Sprintf("\t%.2f", gauge.Quantile(f.clientMs[cell{engines[0].name, p.name}], 0.5)))
	}
}

func writeWall(w io.Writer, engines []*engine, f *figures) {
	fmt.Fprintf(w, "\nwall ms of an execution, one in flight with %v idle after each, p50\n\n%s%s\n", gap, head(engines), ratios(engines))
	for _, p := range programs {
		row(w, engines, f, wallP50, p.name, "")
	}
	fmt.Fprintf(w, "\nthe same, p99 (executions)\n\n%s\n", head(engines))
	for _, p := range programs {
		fmt.Fprint(w, p.name)
		for _, e := range engines {
			walls := f.wallMs[cell{e.name, p.name}]
			fmt.Fprintf(w, "\t%.2f (%d)", gauge.Quantile(walls, 0.99), len(walls))
		}
		fmt.Fprintln(w)
	}
}

func writeRate(w io.Writer, engines []*engine, f *figures) {
	fmt.Fprintf(w, "\nexecutions a second, %d in flight, median of the turns\n\n%s%s\n", inFlight, head(engines), ratios(engines))
	row(w, engines, f, rate, oneCall, "")
}

func writeBars(w io.Writer, f *figures) {
	fmt.Fprintf(w, "\nbars, as ratios of executord to the peer\n\n\tpeer\tprogram\tmeasured\tneeded\n")
	missed := 0
	for _, b := range bars() {
		got, met := b.verdict(f)
		said := "met"
		if !met {
			said = "MISSED"
			missed++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%s\t%s\n", b.quantity, b.peer, b.program, got, b.needed(), said)
	}
	fmt.Fprintf(w, "\n%d met, %d missed\n", len(bars())-missed, missed)
}

// writeFloor says what of a hundred calls is none of executord's doing.
func writeFloor(w io.Writer, f *figures, least floor) {
	const calls = 100
	ours := cell{"executord", onePlusOne}
	fmt.Fprintf(w, "\nThe messages of a call alone, sent through a process in between by plain system calls, take %.3f ms of CPU and %.3f ms\n"+
		"of wall at the least: with what 1+1 takes, %d calls take %.2f ms of CPU and %.2f ms of wall before anybody reads a message.\n",
		least.cpuMs, least.wallMs, calls, f.value(cpu, ours)+calls*least.cpuMs, f.value(wallP50, ours)+calls*least.wallMs)
}

// head is the line above figures of all engines.
func head(engines []*engine) string {
	var b strings.Builder
	for _, e := range engines {
		b.WriteString("\t" + e.name)
	}
	return b.String()
}

// ratios is what stands above the ratios to the peers.
func ratios(engines []*engine) string {
	var b strings.Builder
	for _, e := range engines[1:] {
		b.WriteString("\t/" + e.name)
	}
	return b.String()
}

// row prints a quantity of a program in all engines, what is given, and executord's ratio to each peer.
func row(w io.Writer, engines []*engine, f *figures, q quantity, name, between string) {
	fmt.Fprint(w, name)
	for _, e := range engines {
		fmt.Fprintf(w, "\t%.2f", f.value(q, cell{e.name, name}))
	}
	fmt.Fprint(w, between)
	for _, e := range engines[1:] {
		fmt.Fprintf(w, "\t%.2f", f.value(q, cell{engines[0].name, name})/f.value(q, cell{e.name, name}))
	}
	fmt.Fprintln(w)
}
