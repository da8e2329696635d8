package pool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// reapGrace is how long a killed process may take to go away before it is reported and left to its launcher.
const reapGrace = 10 * time.Second

// errLingers is the end of a worker that closed its channel and did not exit.
var errLingers = errors.New("worker closed its channel and went on")

// bury ends the process if it did not end itself, and whatever it was running. It is the reader's last act.
func (m *member) bury(err error) {
	m.gone.Store(true)
	var exit ExitState
	if m.proc != nil {
		exit, err = m.reap(err)
	}
	d := death{err: err, exit: exit, runs: m.unfinished()}
	culprit := m.culprit(d.runs, err)
	toFront(d.runs, culprit)
	for i, r := range d.runs {
		r.out = r.fail(exit, func(cancelled *verdict) *verdict {
			if i > 0 && culprit >= 0 && d.typ != protocol.WorkerCrashed {
				return r.interrupted(d.typ)
			}
			return m.lastVerdict(r, err, exit, cancelled)
		})
		if i == 0 {
			d.typ = typeOf(r.out)
		}
	}
	if v := (*violation)(nil); len(d.runs) == 0 && errors.As(err, &v) {
		d.typ = v.typ
	}
	m.pool.left(m, d)
	for _, r := range d.runs {
		r.finish(r.out)
	}
}

// death is how a worker ended, and what it ran at the time: of several invocations the one first that it ended for, if it is
// known. Typ is the type of that, empty when nothing ran.
type death struct {
	err  error
	exit ExitState
	typ  protocol.Type
	runs []*run
}

// unfinished takes what runs from a member that is gone: an execution or invocations.
func (m *member) unfinished() []*run {
	if r := m.run.Swap(nil); r != nil {
		return []*run{r}
	}
	if m.kept == nil {
		return nil
	}
	return m.kept.underWay(true)
}

// culprit is the place of the one of several invocations that the worker ended for, -1 where it did so for all of them. What
// the pool saw goes before what the worker says. That is believed of limits only, as of an execution: what it blames is its
// own program's in any case.
func (m *member) culprit(runs []*run, err error) int {
	if len(runs) < 2 {
		return -1
	}
	if at := slices.IndexFunc(runs, (*run).condemned); at >= 0 {
		return at
	}
	if v := (*violation)(nil); errors.As(err, &v) && v.typ != "" {
		return max(0, slices.Index(runs, m.blame)) // the oldest where it was found while nothing ran
	}
	if m.word == nil || !lastWords[protocol.Type(m.word.Type)] {
		return -1
	}
	return slices.IndexFunc(runs, func(r *run) bool { return r.id == m.word.ID })
}

// toFront moves the one at that place before the others, and none for -1.
func toFront(runs []*run, at int) {
	if at > 0 {
		r := runs[at]
		copy(runs[1:at+1], runs[:at])
		runs[0] = r
	}
}

// spent tells that the worker left between two executions, since it would be long in making room for the next.
func (d death) spent() bool {
	return d.typ == "" && d.exit.Signal == 0 && d.exit.Code == worker.ExitSpent
}

func typeOf(out *protocol.Outcome) protocol.Type {
	if out == nil || out.Error == nil {
		return ""
	}
	return out.Error.Type
}

// endedBy is the layer that ended a run which took its worker along, err being why the worker ended.
func (r *run) endedBy(err error) Layer {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.verdict != nil:
		return LayerSupervisor
	case mustKill(err) || errors.Is(err, errLingers) || errors.Is(err, errRetired):
		return LayerContract
	}
	return LayerWorker
}

// reap closes the channel and returns how the process ended. Err is why, and comes back as errLingers for a process
// that had to be killed although its channel says that it ended.
func (m *member) reap(err error) (ExitState, error) {
	if errors.Is(err, errRetired) {
		m.stop()
	}
	if !mustKill(err) && !m.exits(exitGrace) && err != errRetired {
		err = errLingers
	}
	m.proc.Kill()
	if m.conn != nil {
		m.conn.Close()
	}
	if !m.exits(reapGrace) {
		m.pool.log.Error("worker process does not go away", "worker", m.name, "pid", m.proc.PID())
	}
	if m.meter != nil {
		m.meter.close()
	}
	select {
	case <-m.proc.Exited():
		return m.proc.Exit(), err
	default:
		return ExitState{Code: -1}, err
	}
}

// mustKill tells that the process has no reason to end by itself.
func mustKill(err error) bool {
	var v *violation
	return errors.As(err, &v) || errors.Is(err, errSilent) || errors.Is(err, errDeaf) || errors.Is(err, errUnfit)
}

// exits waits for the process for a while.
func (m *member) exits(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-m.proc.Exited():
		return true
	case <-timer.C:
		return false
	}
}

// lastVerdict is the verdict on a run that took its worker along.
func (m *member) lastVerdict(r *run, err error, exit ExitState, cancelled *verdict) *verdict {
	var v *violation
	switch {
	case errors.As(err, &v):
		return v.verdict(r.limits)
	case errors.Is(err, errLingers):
		return crashed("protocol", err.Error())
	case errors.Is(err, errSilent) && m.word == nil, errors.Is(err, errDeaf):
		return unresponsive(err.Error())
	case errors.Is(err, errRetired):
		return &verdict{typ: protocol.Cancelled, message: "the service is shutting down"}
	}
	word := m.word
	if word != nil && word.ID != r.id && word.ID != 0 {
		word = nil // on another execution
	}
	return autopsy(word, exit, r.limits, cancelled)
}

// obituary is the end of a worker for the operator, but for what it wrote to standard error.
func (m *member) obituary(err error, exit ExitState) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", err)
	if m.proc == nil {
		return b.String()
	}
	fmt.Fprintf(&b, " (%s)", exit)
	if m.word != nil {
		fmt.Fprintf(&b, "; last word %q: %q", Clip(m.word.Type, maxLayerBytes), Clip(m.word.Detail, maxDetail))
	}
	return b.String()
}

// stderr is the end of what the worker wrote there: after a native fault its stack.
func (m *member) stderr() string {
	if m.proc == nil {
		return ""
	}
	return m.proc.Stderr()
}
