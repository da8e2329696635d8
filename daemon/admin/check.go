package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// Check is whether the service does its work.
type Check struct {
	OK       bool        `json:"ok"`
	Address  string      `json:"address"` // of the protocol port that was used
	TookMs   float64     `json:"tookMs"`
	Steps    []CheckStep `json:"steps"`
	Warnings []string    `json:"warnings"` // of what does work, but not as it should
}

// CheckStep is one thing that was tried.
type CheckStep struct {
	Name   string  `json:"name"`
	OK     bool    `json:"ok"`
	Detail string  `json:"detail"` // in words: what was seen, or what is wrong
	TookMs float64 `json:"tookMs"`
}

// checkTimeout bounds a whole check, and stepTimeout one step with its wait for a worker.
const (
	checkTimeout = 60 * time.Second
	stepTimeout  = 15 * time.Second
)

// trial is one step over a connection. It returns what was seen.
type trial struct {
	name string
	try  func(ctx context.Context, e executor.Executor) (string, error)
}

var trials = []trial{
	{"value", tryValue},
	{"tool call", tryTool},
	{"bytes", tryBytes},
	{"CPU limit", tryLimit(protocol.CPUTimeout, "for (;;);", protocol.Limits{CPUMs: 50})},
	{"memory limit", tryLimit(protocol.MemoryLimit, "const a = []; for (;;) a.push(new Array(1e4).fill(1.5));", protocol.Limits{HeapMiB: 16})},
	{"deadlock", tryLimit(protocol.Deadlock, "await new Promise(() => {});", protocol.Limits{})},
	{"no network", tryNetwork},
	{"no machine", tryMachine},
}

func (a *App) check(c *call) (any, error) {
	if !a.checking.CompareAndSwap(false, true) {
		return nil, protocol.Errorf(protocol.Overloaded, "another check is under way")
	}
	defer a.checking.Store(false)
	ctx, cancel := context.WithTimeout(c.Context(), checkTimeout)
	defer cancel()
	began := time.Now()
	found := Check{OK: true, Steps: []CheckStep{}, Warnings: warnings(a.cfg.Pool.Stats(), a.cfg.Pool.Workers())}
	var e executor.Executor
	found.step(ctx, "connect", func(ctx context.Context) (seen string, err error) {
		e, found.Address, err = a.cfg.Dial(ctx)
		return "a session over " + found.Address, err
	})
	if e != nil {
		for _, t := range trials {
			found.step(ctx, t.name, func(ctx context.Context) (string, error) { return t.try(ctx, e) })
		}
		_ = e.Close()
	}
	found.step(ctx, "isolation", func(context.Context) (string, error) { return a.tryIsolation() })
	found.TookMs = ms(time.Since(began))
	return found, nil
}

func (k *Check) step(ctx context.Context, name string, try func(context.Context) (string, error)) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	began := time.Now()
	seen, err := try(ctx)
	s := CheckStep{Name: name, OK: err == nil, Detail: seen, TookMs: ms(time.Since(began))}
	if err != nil {
		s.Detail, k.OK = inWords(err), false
	}
	k.Steps = append(k.Steps, s)
}

// inWords says what is wrong and, where that is known, what to do.
func inWords(err error) string {
	advice := ""
	switch {
	case errors.Is(err, protocol.Overloaded), errors.Is(err, protocol.QueueTimeout):
		advice = "; the service is busy: see status, and --workers and --queue"
	case errors.Is(err, protocol.Maintenance):
		advice = "; leave maintenance to have programs taken"
	case errors.Is(err, protocol.SessionLimit):
		advice = "; see session list, and --max-sessions"
	case errors.Is(err, protocol.WorkerCrashed):
		advice = "; the log has the worker's last words"
	case errors.Is(err, protocol.Unauthorized):
		advice = "; the service does not take its own user"
	}
	return err.Error() + advice
}

// value runs a program that has to end with a value.
func value(ctx context.Context, e executor.Executor, r executor.Request) (protocol.Value, error) {
	r.Name = "check.js"
	o, err := e.Execute(ctx, r)
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		return nil, err
	}
	return o.Value, nil
}

// wants compares a value with what it has to be.
func wants(got protocol.Value, want string) error {
	if string(got) != want {
		return fmt.Errorf("the program returned %.80s, not %s", got, want)
	}
	return nil
}

func tryValue(ctx context.Context, e executor.Executor) (string, error) {
	got, err := value(ctx, e, executor.Request{Execute: protocol.Execute{Code: "6 * 7"}})
	if err == nil {
		err = wants(got, "42")
	}
	return "6 * 7 is 42", err
}

func tryTool(ctx context.Context, e executor.Executor) (string, error) {
	asked := 0
	r := executor.Request{Execute: protocol.Execute{Code: "await check.add(2, 3)"}}
	r.Provide(executor.Provider{Name: "check", Tools: map[string]executor.Tool{
		"add": executor.Func(func(a, b int) int { asked++; return a + b }),
	}})
	got, err := value(ctx, e, r)
	if err == nil {
		err = wants(got, "5")
	}
	if err == nil && asked != 1 {
		err = fmt.Errorf("the tool was called %d times", asked)
	}
	return "a tool of the caller was called and answered", err
}

func tryBytes(ctx context.Context, e executor.Executor) (string, error) {
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	input, err := protocol.Marshal(all[:])
	if err != nil {
		return "", err
	}
	got, err := value(ctx, e, executor.Request{Execute: protocol.Execute{Code: "(b) => b", Input: input}})
	if err != nil {
		return "", err
	}
	var back []byte
	if err := protocol.Unmarshal(got, &back); err != nil {
		return "", err
	}
	if !bytes.Equal(back, all[:]) {
		return "", errors.New("256 bytes came back changed")
	}
	return "256 bytes went in and came out", nil
}

// tryLimit runs a program that has to be stopped.
func tryLimit(want protocol.Type, code string, l protocol.Limits) func(context.Context, executor.Executor) (string, error) {
	return func(ctx context.Context, e executor.Executor) (string, error) {
		got, err := value(ctx, e, executor.Request{Execute: protocol.Execute{Code: code, Limits: l, Form: protocol.FormScript}})
		switch {
		case errors.Is(err, want):
			return "a program was stopped with " + string(want), nil
		case err == nil:
			return "", fmt.Errorf("a program that has to be stopped with %s returned %.80s", want, got)
		}
		return "", fmt.Errorf("a program that has to be stopped with %s ended with %w", want, err)
	}
}

func tryNetwork(ctx context.Context, e executor.Executor) (string, error) {
	code := "try { await fetch('http://127.0.0.1/'); return 'reached'; } catch { return 'refused'; }"
	got, err := value(ctx, e, executor.Request{Execute: protocol.Execute{Code: code, Form: protocol.FormScript}})
	if err == nil {
		err = wants(got, `"refused"`)
	}
	return "fetch is refused where no network is asked for", err
}

func tryMachine(ctx context.Context, e executor.Executor) (string, error) {
	code := "['process', 'require', 'Deno', 'Bun', 'module'].filter((n) => n in globalThis).join()"
	got, err := value(ctx, e, executor.Request{Execute: protocol.Execute{Code: code}})
	if err == nil {
		err = wants(got, `""`)
	}
	return "a program sees no files and no processes", err
}

// tryIsolation says what is in force around the workers.
func (a *App) tryIsolation() (string, error) {
	workers := a.cfg.Pool.Workers()
	layers := common(workers)
	if len(layers) == 0 {
		return "", fmt.Errorf("none of %d workers says what isolates it", len(workers))
	}
	return "in force around every worker: " + strings.Join(layers, ", "), nil
}

// Check has the service tried. It may take a minute.
func (c *Client) Check(ctx context.Context) (Check, error) {
	return ask[Check](ctx, c, http.MethodPost, "/v1/check", nil)
}
