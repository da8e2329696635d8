package sandbox

import (
	"container/heap"
	"time"
)

// timers are the pending timers of one execution, in the order in which they are due. Only the loop's goroutine uses
// them.
type timers struct {
	queue  timerQueue
	byID   map[uint32]*timer
	nextID uint32
	order  uint64
}

type timer struct {
	id     uint32
	task   uint64 // that started it
	due    time.Time
	order  uint64 // breaks ties: first started, first fired
	every  time.Duration
	repeat bool
	place  int
}

func newTimers() *timers { return &timers{byID: map[uint32]*timer{}} }

// start adds a timer that is due after d. A repeating one never fires more often than once a millisecond.
func (t *timers) start(now time.Time, d time.Duration, repeat bool, task uint64) uint32 {
	if repeat {
		d = max(d, time.Millisecond)
	}
	t.nextID++
	t.order++
	x := &timer{id: t.nextID, task: task, due: now.Add(d), order: t.order, every: d, repeat: repeat}
	t.byID[x.id] = x
	heap.Push(&t.queue, x)
	return x.id
}

func (t *timers) stop(id uint32) {
	if x, ok := t.byID[id]; ok {
		delete(t.byID, id)
		heap.Remove(&t.queue, x.place)
	}
}

// next is when the first timer is due; ok is false when there is none.
func (t *timers) next() (due time.Time, ok bool) {
	if len(t.queue) == 0 {
		return time.Time{}, false
	}
	return t.queue[0].due, true
}

// take removes the first timer that is due at now, or re-arms it if it repeats.
func (t *timers) take(now time.Time) (x *timer, last, ok bool) {
	if len(t.queue) == 0 || t.queue[0].due.After(now) {
		return nil, false, false
	}
	x = t.queue[0]
	if !x.repeat {
		heap.Pop(&t.queue)
		delete(t.byID, x.id)
		return x, true, true
	}
	t.order++
	x.due, x.order = now.Add(x.every), t.order
	heap.Fix(&t.queue, 0)
	return x, false, true
}

type timerQueue []*timer

func (q timerQueue) Len() int { return len(q) }
func (q timerQueue) Less(i, j int) bool {
	if q[i].due.Equal(q[j].due) {
		return q[i].order < q[j].order
	}
	return q[i].due.Before(q[j].due)
}

func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *timerQueue) Push(x any) {
	x.(*timer).place = len(*q)
	*q = append(*q, x.(*timer))
}

func (q *timerQueue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	return last
}
