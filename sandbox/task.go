package sandbox

import (
	"slices"

	"github.com/executord/executord/ipc/worker"
)

// task is what one Result answers: the run of a program, or an invocation of a handle that it left. Its clocks, its limits and
// what it printed and called are its own. Fields without a lock belong to the loop's goroutine.
type task struct {
	id      uint64
	limits  worker.Limits
	clocks  *clocks
	dog     *watchdog
	console *console

	begun          bool // the program's own, and an invocation once its handle was called
	calls, fetches uint64
	inFlight       int64             // tool calls that the host has
	turns          []worker.ToolCall // those that wait for their turn, in order
	reached        map[string]bool   // limits that it ran into and that did not end it
}

// active are the tasks under way, oldest first. Any goroutine may ask; the slice is not to be changed.
func (e *execution) active() []*task {
	if list := e.tasks.Load(); list != nil {
		return *list
	}
	return nil
}

// add puts a task under way. Any goroutine may call it.
func (e *execution) add(t *task) {
	e.adding.Lock()
	defer e.adding.Unlock()
	list := append(slices.Clone(e.active()), t)
	e.tasks.Store(&list)
}

func (e *execution) remove(t *task) {
	e.adding.Lock()
	defer e.adding.Unlock()
	list := slices.DeleteFunc(slices.Clone(e.active()), func(other *task) bool { return other == t })
	e.tasks.Store(&list)
}

// find gives the task of that number among those under way, nil where there is none.
func (e *execution) find(id uint64) *task {
	for _, t := range e.active() {
		if t.id == id {
			return t
		}
	}
	return nil
}

// attend makes the task that the running code belongs to the current one. What belongs to one that has ended, or to none that
// is known, falls to the oldest.
func (e *execution) attend() {
	switch list := e.active(); len(list) {
	case 0:
	case 1:
		e.task = list[0]
	default:
		e.task = list[0]
		if t := e.find(e.iso.Task()); t != nil {
			e.task = t
		}
	}
}

func (t *task) stopped() bool {
	reason, _ := t.dog.why()
	return reason != ""
}

// stopped gives the task under way that was stopped first, nil for none.
func (e *execution) stopped() *task {
	for _, t := range e.active() {
		if t.stopped() {
			return t
		}
	}
	return nil
}
