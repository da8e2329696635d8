package admin

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/executord/executord/daemon/pool"
)

// Worker is one worker process.
type Worker struct {
	Name       string   `json:"name"`
	PID        int      `json:"pid"`
	State      string   `json:"state"` // starting, idle, running, retained, restoring or leaving
	Due        bool     `json:"due"`   // to be replaced
	Executions int      `json:"executions"`
	AgeMs      float64  `json:"ageMs"`
	RSSBytes   int64    `json:"rssBytes"` // resident memory, when it was last looked at
	Engine     string   `json:"engine"`
	Isolation  []string `json:"isolation"`           // layers in force, as the worker says
	Execution  string   `json:"execution,omitempty"` // that it runs, or holds
}

// WorkerList is all workers, oldest first.
type WorkerList struct {
	Workers []Worker `json:"workers"`
}

func (a *App) workers(*call) (any, error) { return WorkerList{a.listWorkers()}, nil }

func (a *App) listWorkers() []Worker {
	infos := a.cfg.Pool.Workers()
	running := map[string]string{}
	for _, x := range a.cfg.Pool.Executions() {
		if x.Phase == pool.Running || x.Phase == pool.Retained {
			running[x.Stats.Worker] = cmp.Or(x.Of, x.ID) // also where only its invocations are left
		}
	}
	list := make([]Worker, len(infos))
	for i, w := range infos {
		list[i] = Worker{
			Name: w.Name, PID: w.PID, State: w.State, Due: w.Due, Executions: w.Executions, AgeMs: ms(w.Age), RSSBytes: w.RSSBytes,
			Engine: w.Engine, Isolation: append([]string{}, w.Layers...), Execution: running[w.Name],
		}
	}
	return list
}

func (a *App) worker(c *call) (any, error) {
	name := c.PathValue("worker")
	list := a.listWorkers()
	at := slices.IndexFunc(list, func(w Worker) bool { return w.Name == name })
	if at < 0 {
		return nil, missing("worker", "there is no worker %.100q", name)
	}
	return list[at], nil
}

func (a *App) retire(c *call) (any, error) {
	w, err := a.worker(c)
	if err == nil && !a.cfg.Pool.Retire(c.PathValue("worker")) {
		err = missing("worker", "worker %.100q has just ended", c.PathValue("worker"))
	}
	if err != nil {
		return nil, err
	}
	found := w.(Worker)
	found.Due = true
	return found, nil
}

// Workers asks for all workers.
func (c *Client) Workers(ctx context.Context) (WorkerList, error) {
	return ask[WorkerList](ctx, c, http.MethodGet, "/v1/workers", nil)
}

// Worker asks for one worker.
func (c *Client) Worker(ctx context.Context, name string) (Worker, error) {
	return ask[Worker](ctx, c, http.MethodGet, "/v1/workers/"+url.PathEscape(name), nil)
}

// Retire has a worker replaced.
func (c *Client) Retire(ctx context.Context, name string) (Worker, error) {
	return ask[Worker](ctx, c, http.MethodPost, "/v1/workers/"+url.PathEscape(name)+"/retire", nil)
}
