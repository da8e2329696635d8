package pool

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// Bounds of what is remembered of executions that ended. Those with a value do not push out those that ended badly.
const (
	keptFine      = 256
	keptBad       = 1024
	keptLines     = 20 // the last ones of each
	keptLineBytes = 4 << 10
	keptMessage   = 512
)

// Phase is where an execution is.
type Phase string

// The phases.
const (
	Queued   Phase = "queued"
	Running  Phase = "running"
	Retained Phase = "retained" // it has its outcome, and its isolate stays
	Ended    Phase = "ended"
)

// ExecutionInfo is what the operator may know of an execution: nothing that it was given or computed.
type ExecutionInfo struct {
	ID       string // unique in the pool, and across pools
	CallerID string // as the caller knows it
	Identity string
	Session  string // empty for none
	Name     string // file name of the program
	Phase    Phase
	Came     time.Time
	Began    time.Time // to run; zero when it did not
	Over     time.Time // zero while it lasts
	Limits   protocol.Limits
	Stats    protocol.Stats // so far, or in all; without limits. CPUMs of one that runs is that of its worker since it began
	Type     protocol.Type  // how it ended badly, or why it did not run
	Reason   string         // as protocol.Error.Reason
	Message  string         // the first 512 bytes of the error's; it may be the program's words
	Layer    Layer          // who ended it
	Kept     *KeptInfo      // of one that is retained, or was; its Over is then when that ended
	Of       string         // ID of the retained execution that an invocation is of
	Logs     []protocol.Log // its last console lines, of Execution only: 20 of them, 4 KiB
}

// KeptInfo is what there is to say of a retained execution.
type KeptInfo struct {
	Since   time.Time // its outcome
	Used    time.Time // when the last invocation ended, or as Since
	Until   time.Time // when it ends whatever is invoked
	Handles int       // that were not released
	Calls   int       // invocations under way
	Why     string    // it ended; empty while it lasts
}

// records are the executions of a pool: all that wait or run, and the last that ended. Its lock may be taken under Pool.mu.
type records struct {
	mu        sync.Mutex
	live      map[uint64]*run
	fine, bad recent
}

// recent keeps the last size infos.
type recent struct {
	size  int
	items []ExecutionInfo
	next  int
}

func (r *recent) add(i ExecutionInfo) {
	if len(r.items) < r.size {
		r.items = append(r.items, i)
		return
	}
	r.items[r.next] = i
	r.next = (r.next + 1) % r.size
}

func newRecords() records {
	return records{live: map[uint64]*run{}, fine: recent{size: keptFine}, bad: recent{size: keptBad}}
}

func (r *records) add(x *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[x.number] = x
}

// drop forgets a run that is retained now.
func (r *records) drop(x *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, x.number)
}

// remember adds an execution that was retained, or was about to be.
func (r *records) remember(i ExecutionInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i.Type != "" {
		r.bad.add(i)
		return
	}
	r.fine.add(i)
}

// passing are the types of requests that were turned away at once: of those there may be too many to remember.
var passing = map[protocol.Type]bool{
	protocol.Overloaded: true, protocol.Draining: true, protocol.SessionLimit: true, protocol.HandleUnknown: true,
}

// end remembers a run, unless it was turned away at once. One that is retained is remembered later.
func (r *records) end(x *run, out *protocol.Outcome, err error) {
	if x.kept {
		return
	}
	info := x.record(out, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, x.number)
	switch {
	case info.Type == "":
		r.fine.add(info)
	case !passing[info.Type]:
		r.bad.add(info)
	}
}

// Executions lists all that wait, run or are retained, longest first, and then the last that ended, latest first; without
// their logs.
func (p *Pool) Executions() []ExecutionInfo {
	r := &p.records
	r.mu.Lock()
	live := make([]*run, 0, len(r.live))
	for _, x := range r.live {
		live = append(live, x)
	}
	r.mu.Unlock()
	kept := p.keptInfos(nil) // read in the order in which executions go from one list to the next: none is missed
	r.mu.Lock()
	over := slices.Concat(r.fine.items, r.bad.items)
	r.mu.Unlock()
	slices.SortFunc(live, func(a, b *run) int { return cmp.Compare(a.number, b.number) })
	slices.SortStableFunc(over, func(a, b ExecutionInfo) int { return b.Over.Compare(a.Over) })
	list := make([]ExecutionInfo, 0, len(live)+len(kept)+len(over))
	for _, x := range live {
		list = append(list, x.info())
	}
	list = slices.Concat(list, kept)
	slices.SortStableFunc(list, func(a, b ExecutionInfo) int { return a.Came.Compare(b.Came) })
	list = latest(append(list, over...))
	for i := range list {
		list[i].Logs = nil
	}
	return list
}

// latest leaves of executions that are there twice, for they went on meanwhile, the later.
func latest(list []ExecutionInfo) []ExecutionInfo {
	last := make(map[string]int, len(list))
	for i, x := range list {
		last[x.ID] = i
	}
	if len(last) == len(list) {
		return list
	}
	kept := list[:0]
	for i, x := range list {
		if last[x.ID] == i {
			kept = append(kept, x)
		}
	}
	return kept
}

// keptInfos are the retained executions that which takes, or all of them.
func (p *Pool) keptInfos(which func(*ExecutionInfo) bool) (list []ExecutionInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.retained {
		if which == nil || which(&k.info) {
			i := k.info
			i.Kept = k.state("")
			list = append(list, i)
		}
	}
	return list
}

// Execution returns the executions that the pool or their callers know by id: the one of that ID, else all of that
// CallerID, which is unique in a session only.
func (p *Pool) Execution(id string) []ExecutionInfo {
	r := &p.records
	r.mu.Lock()
	live := r.named(id)
	r.mu.Unlock()
	kept := p.keptInfos(func(i *ExecutionInfo) bool { return i.ID == id || i.CallerID == id })
	var over []ExecutionInfo
	r.mu.Lock()
	for _, i := range slices.Concat(r.fine.items, r.bad.items) {
		if i.ID == id || i.CallerID == id {
			i.Logs = slices.Clone(i.Logs)
			over = append(over, i)
		}
	}
	r.mu.Unlock()
	list := make([]ExecutionInfo, 0, len(live)+len(over))
	for _, x := range live {
		i := x.info()
		if i.Phase == Running {
			i.Logs = x.logs.last()
		}
		list = append(list, i)
	}
	for i := range kept {
		kept[i].Logs = slices.Clone(kept[i].Logs)
	}
	list = latest(slices.Concat(list, kept, over))
	if at := slices.IndexFunc(list, func(i ExecutionInfo) bool { return i.ID == id }); at >= 0 {
		return list[at : at+1]
	}
	return list
}

// named returns the runs of an id of either kind. With mu.
func (r *records) named(id string) (list []*run) {
	for _, x := range r.live {
		if x.execution == id || x.pool.nameOf(x.number) == id {
			list = append(list, x)
		}
	}
	return list
}

// CancelExecution ends the execution of that ID as cancelled, whether it waits or runs; its caller gets the reason as the
// message. One that is retained ends with its invocations. False when there is none, or it has ended.
func (p *Pool) CancelExecution(id, reason string) bool {
	r := &p.records
	r.mu.Lock()
	live := r.named(id)
	r.mu.Unlock()
	reason = Clip(reason, maxDetail)
	at := slices.IndexFunc(live, func(x *run) bool { return p.nameOf(x.number) == id })
	ordered := at >= 0 && live[at].order(reason)
	return p.endAll(func(k *retained) bool { return p.nameOf(k.number) == id }, EndCancelled, reason, reason) > 0 || ordered
}

// order cancels a run for the operator. The reason of the first order stands. False when it has ended; one that is about to be
// retained is not, or is already.
func (r *run) order(reason string) bool {
	r.ordered.CompareAndSwap(nil, &reason)
	if r.pool.discharge(r.waiter) {
		return true
	}
	r.mu.Lock()
	placed, ended, stays := r.placed, r.ended, r.stays
	r.mu.Unlock()
	if placed && !ended {
		r.halt(reason)
	}
	return !ended || stays // between the queue and its worker: begin looks; between its result and its being retained: retain does
}

// info is what there is to say of a run that lasts.
func (r *run) info() ExecutionInfo {
	now := r.pool.outside.now()
	i := r.basics()
	r.mu.Lock()
	placed := r.placed
	if placed {
		i.Phase, i.Began, i.Stats.Worker = Running, r.started, r.m.name
		i.Stats.CPUMs, i.Stats.PeakHeapBytes = ms(max(r.seenCPU-r.startCPU, 0)), int64(min(r.peakHeap, protocol.MaxLimit))
	}
	r.mu.Unlock()
	if !placed {
		i.Stats.QueueMs = ms(now.Sub(r.queued))
		return i
	}
	used := r.govern.spent(now)
	i.Stats.QueueMs, i.Stats.TotalMs, i.Stats.WallMs = ms(i.Began.Sub(i.Came)), ms(now.Sub(i.Began)), ms(used.guest)
	i.Stats.ToolCalls, i.Stats.Fetches = used.calls, used.fetches
	return i
}

func (r *run) basics() ExecutionInfo {
	of := ""
	if r.invoked != nil {
		of = r.pool.nameOf(r.invoked.of.number)
	}
	return ExecutionInfo{
		Of: of, ID: r.pool.nameOf(r.number), CallerID: strings.Clone(r.execution), Identity: r.req.Identity, Session: r.req.Session,
		Name: cmp.Or(strings.Clone(r.req.Name), "main.js"), Phase: Queued, Came: r.queued, Limits: r.limits,
	}
}

// record is what is kept of a run whose Execute returns out and err.
func (r *run) record(out *protocol.Outcome, err error) ExecutionInfo {
	i := r.basics()
	i.Phase, i.Over = Ended, r.pool.outside.now()
	var fault *protocol.Error
	switch {
	case err != nil:
		fault = protocol.AsError(err)
		i.Stats.QueueMs = ms(i.Over.Sub(i.Came))
	default:
		i.Stats, i.Logs, fault = out.Stats, lastLines(out.Logs), out.Error
		i.Stats.Limits = nil
		if i.Stats.Worker != "" {
			i.Began, i.Layer = r.started, r.by
		}
	}
	if fault != nil {
		i.Type, i.Reason, i.Message = fault.Type, fault.Reason, strings.Clone(Clip(fault.Message, keptMessage))
		if fault.Name != "" {
			i.Message = Clip(fault.Name+": "+i.Message, keptMessage)
		}
	}
	return i
}

// lastLines copies the last of lines, within the bounds of what is kept.
func lastLines(lines []protocol.Log) []protocol.Log {
	from, room := len(lines), keptLineBytes
	for from > 0 && len(lines)-from < keptLines && len(lines[from-1].Text) <= room {
		from--
		room -= len(lines[from].Text)
	}
	var kept []protocol.Log
	if from > 0 && from == len(lines) { // the last line alone is too long
		from--
	}
	for _, l := range lines[from:] {
		l.Text, l.Args = strings.Clone(Clip(l.Text, keptLineBytes)), nil
		kept = append(kept, l)
	}
	return kept
}
