package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/executord/executord/daemon/admin"
)

// topCommand is executorctl top.
type topCommand struct {
	operator
	Interval time.Duration `default:"1s" placeholder:"TIME" help:"From one look to the next. Default: ${default}."`
}

// Sequences of terminals (xterm's control sequences).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	eraseLine   = "\x1b[K"
	eraseBelow  = "\x1b[J"
	bold        = "\x1b[1m"
)

// leastInterval keeps a typing error from keeping the service busy.
const leastInterval = 100 * time.Millisecond

// look is the service at one moment.
type look struct {
	Status     admin.Status      `json:"status"`
	Workers    []admin.Worker    `json:"workers"`
	Executions []admin.Execution `json:"executions"` // that wait, run or are retained
	Failed     []admin.Execution `json:"failed"`     // the latest that ended badly
	at         time.Time
}

// maxTopRows bounds what is asked for.
const maxTopRows = 100

func takeLook(ctx context.Context, a *admin.Client) (l look, err error) {
	l.at = time.Now()
	status, err1 := a.Status(ctx)
	workers, err2 := a.Workers(ctx)
	live, err3 := a.Executions(ctx, admin.ExecutionFilter{State: []string{"queued", "running", "retained"}, Limit: maxTopRows})
	bad, err4 := a.Executions(ctx, admin.ExecutionFilter{Outcome: []string{"failed"}, Limit: maxTopRows})
	l.Status, l.Workers, l.Executions, l.Failed = status, workers.Workers, live.Executions, bad.Executions
	return l, cmp.Or(err1, err2, err3, err4)
}

// Run shows the service until q, Ctrl-C or the end of the input. With --json it prints one look.
func (c *topCommand) Run(ctx context.Context, w *world) error {
	if c.JSON {
		return with(ctx, w, c.operator, takeLook, func(*world, look) {})
	}
	in, isFile := w.in.(*os.File)
	if !isFile || !w.out.terminal || !term.IsTerminal(int(in.Fd())) {
		return errors.New("cannot show a live view: standard input and output must be a terminal; top --json prints one look")
	}
	if c.Interval < leastInterval {
		return fmt.Errorf("cannot look every %s: --interval must be at least %s", c.Interval, leastInterval)
	}
	a, err := admin.NewClient(c.address(w))
	if err != nil {
		return err
	}
	defer a.Close()
	first, err := takeLook(ctx, a)
	if err != nil {
		return adminHint(c.address(w), err)
	}
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), old) }()
	_, _ = fmt.Fprint(w.out, enterScreen)
	defer func() { _, _ = fmt.Fprint(w.out, leaveScreen) }()
	return c.watch(ctx, w, a, in, first)
}

// watch redraws when time has passed, and when the terminal has another size.
func (c *topCommand) watch(ctx context.Context, w *world, a *admin.Client, in *os.File, now look) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // it ends with the process, for a read of a terminal cannot be given up
		awaitQuit(in)
		cancel()
	}()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	var before look
	fault := ""
	for {
		width, height, err := term.GetSize(int(in.Fd()))
		if err != nil {
			return fmt.Errorf("cannot use the terminal: %w", err)
		}
		draw(w.out, view(w.out, before, now, fault, width, height))
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
			continue
		case <-tick.C:
		}
		next, err := takeLook(ctx, a)
		if err != nil {
			fault = adminHint(c.address(w), err).Error() // it may come back
			continue
		}
		before, now, fault = now, next, ""
	}
}

// awaitQuit reads keys until q, Ctrl-C, Ctrl-D or the end.
func awaitQuit(in *os.File) {
	keys := make([]byte, 16)
	for {
		n, err := in.Read(keys)
		if err != nil || slices.ContainsFunc(keys[:n], func(k byte) bool { return k == 'q' || k == 'Q' || k == 3 || k == 4 }) {
			return
		}
	}
}

func draw(s stream, lines []string) {
	var b strings.Builder
	b.WriteString(home)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + eraseLine)
	}
	b.WriteString(eraseBelow)
	_, _ = s.Write([]byte(b.String()))
}

// view makes the lines of a screen of that size. Before may be zero.
func view(s stream, before, now look, fault string, width, height int) []string {
	lines := headOf(s, before, now, fault)
	section := func(title string, head []string, rows [][]cell) {
		if len(rows) == 0 {
			return
		}
		lines = append(lines, "", s.paint(bold, title))
		lines = append(lines, layOut(s, head, rows)...)
	}
	var workers, live, bad [][]cell
	for _, x := range now.Workers {
		workers = append(workers, workerRow(x))
	}
	for _, x := range now.Executions {
		live = append(live, executionRow(x))
	}
	for _, x := range now.Failed {
		bad = append(bad, []cell{plain(x.ID), {x.Label(), colorOf(x.Label())}, plain(since(x.Since) + " ago"), plain(x.Identity), plain(x.Name), plain(x.Message)})
	}
	section(fmt.Sprintf("Workers: %d", len(workers)), workerHead, workers)
	section(fmt.Sprintf("Executions: %d waiting, %d running, %d retained", now.Status.Queue.Waiting, now.Status.Queue.Running, now.Status.Retained), executionHead, live)
	section("Ended badly of late", []string{"EXECUTION", "OUTCOME", "WHEN", "CALLER", "PROGRAM", "MESSAGE"}, bad)
	lines = lines[:min(len(lines), max(height, 1))]
	for i := range lines {
		lines[i] = cut(lines[i], width)
	}
	return lines
}

func headOf(s stream, before, now look, fault string) []string {
	st := now.Status
	lines := []string{
		fmt.Sprintf("executord %s %s, up %s, %d sessions; q quits", clean(st.Version, true), s.paint(colorOf(st.State.Name), st.State.Name), msec(st.UptimeMs), st.Sessions),
		fmt.Sprintf("queue %d waiting, %d running, %s each of late; %s", st.Queue.Waiting, st.Queue.Running, msec(st.Queue.ServiceMs), rates(before, now)),
		fmt.Sprintf("ended %d%s", st.Totals.Executions, counts(": ", st.Totals.Outcomes)),
	}
	if st.State.Reason != "" {
		lines = append(lines, clean(st.State.Reason, true))
	}
	for _, text := range st.Warnings {
		lines = append(lines, s.paint(yellow, "warning: "+printable(oneLine(text), true)))
	}
	if fault != "" {
		lines = append(lines, s.paint(red, printable(oneLine(fault), true)))
	}
	return lines
}

// rates are what happened from one look to the next, in a second.
func rates(before, now look) string {
	seconds := now.at.Sub(before.at).Seconds()
	if before.at.IsZero() || seconds <= 0 || before.Status.PID != now.Status.PID {
		return "-/s ended"
	}
	per := func(a, b uint64) float64 { return float64(b-min(a, b)) / seconds }
	a, b := before.Status.Totals, now.Status.Totals
	return fmt.Sprintf("%.1f/s ended, %.1f/s turned away", per(a.Executions, b.Executions), per(a.Overloaded+a.QueueTimeouts, b.Overloaded+b.QueueTimeouts))
}

// cut ends a line at the width of the screen; sequences have no width.
func cut(line string, width int) string {
	var b strings.Builder
	shown, escape := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case shown == width:
			continue
		default:
			shown++
			b.WriteRune(r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
