package admin

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/protocol"
)

// Execution is one program on its way through the service.
type Execution struct {
	ID       string     `json:"id"`       // in the service
	CallerID string     `json:"callerId"` // as its caller knows it; unique in a session only
	Identity string     `json:"identity"` // of the caller
	Session  string     `json:"session,omitempty"`
	Name     string     `json:"name"`  // file name of the program
	State    string     `json:"state"` // queued, running, retained or ended
	Since    time.Time  `json:"since"` // of the state
	Came     time.Time  `json:"came"`
	Began    *time.Time `json:"began,omitempty"` // to run
	Worker   string     `json:"worker,omitempty"`
	Outcome  string     `json:"outcome,omitempty"` // of one that ended: ok, or the type of the error
	Reason   string     `json:"reason,omitempty"`  // with worker_crashed
	Message  string     `json:"message,omitempty"` // of the error, its first 512 bytes; the program may have written it
	EndedBy  string     `json:"endedBy,omitempty"` // the layer: engine, worker, contract or supervisor

	QueueMs       float64 `json:"queueMs"` // so far, like all of these
	CPUMs         float64 `json:"cpuMs"`   // of the isolate; while it runs, of its worker's whole process
	WallMs        float64 `json:"wallMs"`  // the program's own time, without waits for its host
	TotalMs       float64 `json:"totalMs"` // since it began
	PeakHeapBytes int64   `json:"peakHeapBytes"`
	ToolCalls     int64   `json:"toolCalls"`
	Fetches       int64   `json:"fetches"`

	Retained *RetainedExecution `json:"retained,omitempty"` // of one that is retained, or was
	Of       string             `json:"of,omitempty"`       // the retained execution that an invocation calls into

	Limits *protocol.Limits `json:"limits,omitempty"` // of one that is asked for by name
	Logs   []LogLine        `json:"logs,omitempty"`   // likewise: the last 20 lines, 4 KiB
}

// RetainedExecution is what there is to say of an isolate that stayed after its outcome.
type RetainedExecution struct {
	Since   time.Time `json:"since"`         // the outcome
	Used    time.Time `json:"used"`          // when the last invocation ended, or the outcome
	Until   time.Time `json:"until"`         // when it ends whatever is invoked
	Handles int       `json:"handles"`       // that were not released
	Calls   int       `json:"calls"`         // invocations under way
	Why     string    `json:"why,omitempty"` // it ended
}

// LogLine is one console line of a program.
type LogLine struct {
	Level protocol.Level `json:"level"`
	Time  float64        `json:"time"` // milliseconds since it began to run
	Text  string         `json:"text"`
}

// ExecutionList is executions, and how many more the filter found.
type ExecutionList struct {
	Executions []Execution `json:"executions"`
	Omitted    int         `json:"omitted"`
}

// Bounds of a list.
const (
	usualListed = 200
	mostListed  = 5000
)

var executionFilter = []Query{
	{"state", "Only those: queued, running, retained, ended; several with commas.", []string(nil)},
	{"outcome", "Only those that ended so: ok, failed for all else, or types of errors; several with commas.", []string(nil)},
	{"identity", "Only those of this caller.", ""},
	{"session", "Only those of this session.", ""},
	{"worker", "Only those that this worker runs or ran.", ""},
	{"limit", "No more than this, 200 unless given and 5000 at most.", 0},
}

// ExecutionFilter says which executions to list. Zero fields mean all; Limit 0 means 200.
type ExecutionFilter struct {
	State, Outcome            []string
	Identity, Session, Worker string
	Limit                     int
}

func (f ExecutionFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"state": strings.Join(f.State, ","), "outcome": strings.Join(f.Outcome, ","), "identity": f.Identity, "session": f.Session, "worker": f.Worker,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Limit != 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// failed is every outcome but OK, in a filter.
const failed = "failed"

func readFilter(q url.Values) (f ExecutionFilter, err error) {
	if err := known(q, executionFilter); err != nil {
		return f, err
	}
	f = ExecutionFilter{
		State: words(q.Get("state")), Outcome: words(q.Get("outcome")), Identity: q.Get("identity"), Session: q.Get("session"),
		Worker: q.Get("worker"), Limit: usualListed,
	}
	for _, s := range f.State {
		if !slices.Contains([]pool.Phase{pool.Queued, pool.Running, pool.Retained, pool.Ended}, pool.Phase(s)) {
			return f, protocol.FieldError("state", "must be queued, running, retained or ended, not %.40q", s)
		}
	}
	for _, s := range f.Outcome {
		if _, is := protocol.Type(s).Info(); !is && s != OK && s != failed {
			return f, protocol.FieldError("outcome", "there is no outcome %.40q", s)
		}
	}
	if text := q.Get("limit"); text != "" {
		if f.Limit, err = strconv.Atoi(text); err != nil || f.Limit < 1 || f.Limit > mostListed {
			return f, protocol.FieldError("limit", "must be from 1 to %d, not %.40q", mostListed, text)
		}
	}
	return f, nil
}

// words splits a list with commas.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// known refuses parameters that there are not, for a misspelt filter must not mean none.
func known(q url.Values, list []Query) error {
	for name := range q {
		if !slices.ContainsFunc(list, func(p Query) bool { return p.Name == name }) {
			return protocol.FieldError("", "there is no parameter %.40q", name)
		}
	}
	return nil
}

func (f ExecutionFilter) takes(x pool.ExecutionInfo) bool {
	outcome := outcomeOf(x.Type)
	switch {
	case len(f.State) > 0 && !slices.Contains(f.State, string(x.Phase)),
		f.Identity != "" && f.Identity != x.Identity,
		f.Session != "" && f.Session != x.Session,
		f.Worker != "" && f.Worker != x.Stats.Worker:
		return false
	case len(f.Outcome) == 0:
		return true
	}
	return x.Phase == pool.Ended && (slices.Contains(f.Outcome, outcome) || outcome != OK && slices.Contains(f.Outcome, failed))
}

func (a *App) executions(c *call) (any, error) {
	f, err := readFilter(c.URL.Query())
	if err != nil {
		return nil, err
	}
	list := ExecutionList{Executions: []Execution{}}
	for _, x := range a.cfg.Pool.Executions() {
		switch {
		case !f.takes(x):
		case len(list.Executions) == f.Limit:
			list.Omitted++
		default:
			list.Executions = append(list.Executions, execution(x))
		}
	}
	return list, nil
}

// execution is x without limits and logs.
func execution(x pool.ExecutionInfo) Execution {
	own := Execution{
		ID: x.ID, CallerID: x.CallerID, Identity: x.Identity, Session: x.Session, Name: x.Name, State: string(x.Phase),
		Since: x.Came, Came: x.Came, Began: timeOrNil(x.Began), Worker: x.Stats.Worker,
		Reason: x.Reason, Message: x.Message, EndedBy: string(x.Layer),
		QueueMs: x.Stats.QueueMs, CPUMs: x.Stats.CPUMs, WallMs: x.Stats.WallMs, TotalMs: x.Stats.TotalMs,
		PeakHeapBytes: x.Stats.PeakHeapBytes, ToolCalls: x.Stats.ToolCalls, Fetches: x.Stats.Fetches,
		Of: x.Of,
	}
	if k := x.Kept; k != nil {
		own.Retained = &RetainedExecution{Since: k.Since, Used: k.Used, Until: k.Until, Handles: k.Handles, Calls: k.Calls, Why: k.Why}
	}
	switch x.Phase {
	case pool.Running:
		own.Since = x.Began
	case pool.Retained:
		own.Since = x.Kept.Since
	case pool.Ended:
		own.Since, own.Outcome = x.Over, outcomeOf(x.Type)
	}
	return own
}

// find returns the one execution that goes by the id in the path.
func (a *App) find(c *call) (pool.ExecutionInfo, error) {
	id := c.PathValue("execution")
	list := a.cfg.Pool.Execution(id)
	switch len(list) {
	case 0:
		return pool.ExecutionInfo{}, missing("execution", "there is no execution %.100q, or it ended too long ago", id)
	case 1:
		return list[0], nil
	}
	var ids []string
	for _, x := range list[:min(len(list), 5)] {
		ids = append(ids, x.ID)
	}
	return pool.ExecutionInfo{}, conflict("%d callers have an execution %.100q: ask for one of %s", len(list), id, strings.Join(ids, ", "))
}

func (a *App) execution(c *call) (any, error) {
	x, err := a.find(c)
	if err != nil {
		return nil, err
	}
	own := execution(x)
	own.Limits = &x.Limits
	for _, l := range x.Logs {
		own.Logs = append(own.Logs, LogLine{l.Level, l.Time, l.Text})
	}
	return own, nil
}

// Cancel says why an execution is ended.
type Cancel struct {
	Reason string `json:"reason,omitempty"` // its caller reads it; 512 bytes at most
}

func (a *App) cancel(c *call) (any, error) {
	reason := body[Cancel](c).Reason
	if len(reason) > maxReasonBytes {
		return nil, protocol.FieldError("reason", "has more than %d bytes", maxReasonBytes)
	}
	x, err := a.find(c)
	if err != nil {
		return nil, err
	}
	text := "cancelled by the operator " + c.who.name
	if reason != "" {
		text += ": " + reason
	}
	if !a.cfg.Pool.CancelExecution(x.ID, text) {
		return nil, conflict("execution %.100q has ended", x.ID)
	}
	c.SetPathValue("execution", x.ID)
	return a.execution(c)
}

// Executions asks for executions.
func (c *Client) Executions(ctx context.Context, f ExecutionFilter) (ExecutionList, error) {
	path := "/v1/executions"
	if q := f.query().Encode(); q != "" {
		path += "?" + q
	}
	return ask[ExecutionList](ctx, c, http.MethodGet, path, nil)
}

// Execution asks for one execution, by its id in the service, or by its caller's where that is the only one.
func (c *Client) Execution(ctx context.Context, id string) (Execution, error) {
	return ask[Execution](ctx, c, http.MethodGet, "/v1/executions/"+url.PathEscape(id), nil)
}

// Cancel ends an execution. What is returned may not have ended yet.
func (c *Client) Cancel(ctx context.Context, id string, why Cancel) (Execution, error) {
	return ask[Execution](ctx, c, http.MethodPost, "/v1/executions/"+url.PathEscape(id)+"/cancel", why)
}

// Label is the outcome, or the state of an execution that has none yet.
func (x Execution) Label() string { return cmp.Or(x.Outcome, x.State) }
