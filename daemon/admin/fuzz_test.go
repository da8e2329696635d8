package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/ipc/executor"
)

// nothing is a pool without workers.
type nothing struct{}

func (nothing) Stats() pool.Stats          { return pool.Stats{} }
func (nothing) Workers() []pool.WorkerInfo { return []pool.WorkerInfo{{Name: "worker-1"}} }
func (nothing) Retire(string) bool         { return true }
func (nothing) Executions() []pool.ExecutionInfo {
	return []pool.ExecutionInfo{{ID: "A-1", Phase: pool.Ended}}
}
func (nothing) Execution(id string) []pool.ExecutionInfo { return []pool.ExecutionInfo{{ID: id}} }
func (nothing) CancelExecution(string, string) bool      { return true }

// FuzzRequest sends what an operator's program may send. Every answer is a success or a typed error, and never a fault of
// the app.
func FuzzRequest(f *testing.F) {
	ring := events.New(16)
	ring.Publish(events.Event{Kind: events.ServiceReady})
	app, err := New(Config{
		Pool: nothing{}, Service: &service{}, Events: ring, LogLevel: &slog.LevelVar{},
		Sessions: func() []Session { return nil }, Settings: func() []settings.Setting { return nil },
		Dial: func(context.Context) (executor.Executor, string, error) { return nil, "", errors.New("nobody") },
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, to := range Routes() {
		f.Add(to.Method, to.Path, "", "")
	}
	f.Add("GET", "/v1/events?follow=false&after=0&kind=reloaded", "", ring.Instance()+"-1")
	f.Add("GET", "/v1/executions?state=ended&outcome=failed,ok&limit=3", "", "")
	f.Add("PUT", "/v1/maintenance", `{"reason":"x","persistent":true}`, "")
	f.Add("PUT", "/v1/log-level", `{"level":"debug"}`, "x")
	f.Add("POST", "/v1/executions/A-1/cancel", `{"reason":"\u0000"}`, "")
	f.Fuzz(func(t *testing.T, method, target, body, last string) {
		r, err := http.NewRequest(method, "http://localhost"+target, strings.NewReader(body))
		if err != nil || !strings.HasPrefix(target, "/") {
			return
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Last-Event-ID", last)
		ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond) // a stream goes on until its client leaves
		defer leave()
		r = r.WithContext(context.WithValue(ctx, callerKey{}, caller{may: Operate, name: "fuzz"}))
		w := httptest.NewRecorder()
		app.mux.ServeHTTP(w, r)
		switch {
		case w.Code >= 500 && w.Code != http.StatusServiceUnavailable:
			t.Fatalf("%s %q: status %d: %s", method, target, w.Code, w.Body)
		case w.Code >= 400:
			var fault Fault
			if err := json.Unmarshal(w.Body.Bytes(), &fault); err != nil || fault.Error == nil || fault.Error.Type == "" {
				t.Fatalf("%s %q: status %d without a typed error: %s", method, target, w.Code, w.Body)
			}
		}
	})
}

// FuzzStream reads what is no stream of events, or a broken one.
func FuzzStream(f *testing.F) {
	f.Add("id: A-1\nevent: reloaded\ndata: {\"id\":1,\"kind\":\"reloaded\"}\n\n")
	f.Add("event: missed\ndata: {\"missed\":3}\n\n: x\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		err := readStream(strings.NewReader(text), func(events.Event) error { n++; return nil }, func(Missed) error { n++; return nil })
		if n > strings.Count(text, "data: ") {
			t.Errorf("%d events and %v from %q", n, err, text)
		}
	})
}
