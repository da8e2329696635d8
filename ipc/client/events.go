package client

import (
	"sync"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// event is one call of a callback: one field is set.
type event struct {
	log   *protocol.Log
	state *protocol.State
}

func (e event) bytes() int {
	if e.log == nil {
		return 64
	}
	return 64 + len(e.log.Text)
}

// maxEventBytes bounds what waits for slow callbacks of one execution. The outcome has all lines anyway.
const maxEventBytes = 8 << 20

// events carries the news of one execution from the reader, which must not wait, to the goroutine in Execute, which
// runs the callbacks.
type events struct {
	wake chan struct{} // capacity 1: there are some

	mu    sync.Mutex
	list  []event
	bytes int
}

func (q *events) add(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes+e.bytes() > maxEventBytes {
		q.leaveOut(e)
		return
	}
	q.list = append(q.list, e)
	q.bytes += e.bytes()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// leaveOut counts a line in the marker that stands in its place. A state is superseded by the next one.
func (q *events) leaveOut(e event) {
	if e.log == nil || len(q.list) == 0 {
		return
	}
	last := q.list[len(q.list)-1]
	if last.log == nil || last.log.Truncated == nil {
		last = event{log: &protocol.Log{
			Level: protocol.LevelWarn, Time: e.log.Time, Truncated: &protocol.Truncated{},
			Text: "lines left out of the stream: the callback is too slow",
		}}
		q.list = append(q.list, last)
	}
	last.log.Truncated.Lines++
	last.log.Truncated.Bytes += int64(len(e.log.Text))
}

// deliver runs the callbacks for all that is there.
func (q *events) deliver(r *executor.Request) {
	for {
		q.mu.Lock()
		list := q.list
		q.list, q.bytes = nil, 0
		q.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, e := range list {
			if e.log != nil {
				r.OnLog(*e.log)
			} else {
				r.OnState(*e.state)
			}
		}
	}
}
