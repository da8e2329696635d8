package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/executord/executord/daemon/admin"
)

// workerCommands are executorctl worker ….
type workerCommands struct {
	List   workerList   `cmd:"" help:"List the worker processes."`
	Show   workerShow   `cmd:"" help:"Show one worker process."`
	Retire workerRetire `cmd:"" help:"Replace a worker as soon as it has nothing to run."`
}

type workerList struct{ operator }

// Run prints all workers.
func (c *workerList) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.WorkerList, error) { return a.Workers(ctx) }, func(w *world, list admin.WorkerList) {
		var rows [][]cell
		for _, x := range list.Workers {
			rows = append(rows, workerRow(x))
		}
		w.table(workerHead, rows)
	})
}

var workerHead = []string{"WORKER", "PID", "STATE", "AGE", "PROGRAMS", "MEMORY", "EXECUTION"}

func workerRow(x admin.Worker) []cell {
	state := cell{x.State, colorOf(x.State)}
	if x.Due {
		state.text += ", due"
	}
	return []cell{plain(x.Name), plain(fmt.Sprint(x.PID)), state, plain(msec(x.AgeMs)), plain(fmt.Sprint(x.Executions)), plain(size(x.RSSBytes)), plain(x.Execution)}
}

// workerName is the argument of commands on one worker.
type workerName struct {
	Worker string `arg:"" complete:"worker" help:"Its name, as worker list shows it."`
}

type workerShow struct {
	operator
	workerName
}

// Run prints one worker.
func (c *workerShow) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.Worker, error) { return a.Worker(ctx, c.Worker) }, showWorker)
}

func showWorker(w *world, x admin.Worker) {
	due := ""
	if x.Due {
		due = "as soon as it has nothing to run"
	}
	w.facts(
		[2]string{"worker", x.Name}, [2]string{"pid", fmt.Sprint(x.PID)}, [2]string{"state", x.State}, [2]string{"replaced", due},
		[2]string{"age", msec(x.AgeMs)}, [2]string{"programs", fmt.Sprint(x.Executions)}, [2]string{"memory", size(x.RSSBytes)},
		[2]string{"engine", x.Engine}, [2]string{"isolation", strings.Join(x.Isolation, ", ")}, [2]string{"execution", x.Execution},
	)
}

type workerRetire struct {
	operator
	workerName
}

// Run has one worker replaced.
func (c *workerRetire) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.Worker, error) { return a.Retire(ctx, c.Worker) }, func(w *world, x admin.Worker) {
		w.line("%s is replaced as soon as it has nothing to run", x.Name)
	})
}
