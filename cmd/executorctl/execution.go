package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/ipc/protocol"
)

// executionCommands are executorctl execution ….
type executionCommands struct {
	List   executionList   `cmd:"" help:"List executions that wait, run, are retained, or ended of late."`
	Show   executionShow   `cmd:"" help:"Show one execution, with its limits and its last console lines."`
	Cancel executionCancel `cmd:"" help:"End an execution, whether it waits, runs or is retained."`
}

type executionList struct {
	operator
	State    []string `enum:"queued,running,retained,ended" placeholder:"STATE" help:"Only those: queued, running, retained or ended."`
	Outcome  []string `placeholder:"OUTCOME" complete:"outcome" help:"Only those that ended so: ok, failed, or types of errors."`
	Identity string   `placeholder:"CALLER" help:"Only those of this caller."`
	Session  string   `placeholder:"SESSION" help:"Only those of this session."`
	Worker   string   `placeholder:"WORKER" complete:"worker" help:"Only those that this worker runs or ran."`
	Limit    int      `placeholder:"N" help:"No more than this. Default: 200."`
}

// Run prints executions.
func (c *executionList) Run(ctx context.Context, w *world) error {
	f := admin.ExecutionFilter{State: c.State, Outcome: c.Outcome, Identity: c.Identity, Session: c.Session, Worker: c.Worker, Limit: c.Limit}
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.ExecutionList, error) { return a.Executions(ctx, f) }, func(w *world, list admin.ExecutionList) {
		var rows [][]cell
		for _, x := range list.Executions {
			rows = append(rows, executionRow(x))
		}
		w.table(executionHead, rows)
		if list.Omitted > 0 {
			w.line("%d more; --limit shows them", list.Omitted)
		}
	})
}

var executionHead = []string{"EXECUTION", "STATE", "SINCE", "CPU", "TIME", "TOOLS", "WORKER", "CALLER", "PROGRAM"}

func executionRow(x admin.Execution) []cell {
	time := msec(x.TotalMs)
	if x.State == "queued" {
		time = msec(x.QueueMs)
	}
	return []cell{
		plain(x.ID),
		{x.Label(), colorOf(x.Label())},
		plain(since(x.Since)), plain(msec(x.CPUMs)), plain(time),
		plain(fmt.Sprint(x.ToolCalls)), plain(x.Worker), plain(x.Identity), plain(x.Name),
	}
}

// executionID is the argument of commands on one execution.
type executionID struct {
	Execution string `arg:"" complete:"execution" help:"Its id, as execution list shows it; that of its caller will do where it is the only one."`
}

type executionShow struct {
	operator
	executionID
}

// Run prints one execution.
func (c *executionShow) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.Execution, error) {
		return a.Execution(ctx, c.Execution)
	}, showExecution)
}

func showExecution(w *world, x admin.Execution) {
	state := x.State + " for " + since(x.Since)
	if x.Outcome != "" {
		state = x.Outcome + ", " + since(x.Since) + " ago"
	}
	w.facts(
		[2]string{"execution", x.ID}, [2]string{"caller's id", x.CallerID}, [2]string{"caller", x.Identity}, [2]string{"session", x.Session},
		[2]string{"program", x.Name}, [2]string{"state", state}, [2]string{"message", x.Message}, [2]string{"reason", x.Reason},
		[2]string{"retained", retention(x.Retained)}, [2]string{"call into", x.Of}, [2]string{"ended by", x.EndedBy}, [2]string{"worker", x.Worker}, [2]string{"came", x.Came.Local().Format("2006-01-02 15:04:05.000")},
		[2]string{"times", fmt.Sprintf("%s queued, %s in all, %s of its own, %s of CPU", msec(x.QueueMs), msec(x.TotalMs), msec(x.WallMs), msec(x.CPUMs))},
		[2]string{"used", fmt.Sprintf("%s of heap, %d tool calls, %d fetches", size(x.PeakHeapBytes), x.ToolCalls, x.Fetches)},
		[2]string{"limits", limitText(x.Limits)},
	)
	for _, l := range x.Logs {
		printLog(w.out, protocol.Log{Level: l.Level, Time: l.Time, Text: l.Text})
	}
}

func retention(r *admin.RetainedExecution) string {
	switch {
	case r == nil:
		return ""
	case r.Why != "":
		return "since " + r.Since.Local().Format("15:04:05") + ", and ended: " + r.Why
	}
	return fmt.Sprintf("%d handles, %d calls under way, used %s ago, until %s", r.Handles, r.Calls, since(r.Used), r.Until.Local().Format("15:04:05"))
}

// limitText lists limits in the order of the protocol.
func limitText(l *protocol.Limits) string {
	if l == nil {
		return ""
	}
	text, err := json.Marshal(l)
	if err != nil {
		return ""
	}
	return string(text)
}

type executionCancel struct {
	operator
	executionID
	Reason string `placeholder:"TEXT" help:"Why; its caller reads it."`
}

// Run ends one execution.
func (c *executionCancel) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.Execution, error) {
		return a.Cancel(ctx, c.Execution, admin.Cancel{Reason: c.Reason})
	}, func(w *world, x admin.Execution) { w.line("%s is being cancelled", x.ID) })
}
