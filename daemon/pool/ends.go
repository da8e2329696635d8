package pool

import "github.com/executord/executord/ipc/protocol"

// ends keeps the first and the last of a sequence of items within bounds on their number and bytes, and counts what was
// between. Nothing is left out while the whole sequence fits. It is not safe for several goroutines.
type ends[T any] struct {
	maxItems, maxBytes int64
	size               func(T) int64

	head, tail           []T
	headBytes, tailBytes int64
	full                 bool               // the head takes no more
	lost                 protocol.Truncated // between head and tail
}

// add appends x. Where it is larger than room it is lost itself.
func (e *ends[T]) add(x T) {
	n := e.size(x)
	if !e.full && int64(len(e.head)) < e.maxItems-half(e.maxItems) && e.headBytes+n <= e.maxBytes-half(e.maxBytes) {
		e.head = append(e.head, x)
		e.headBytes += n
		return
	}
	e.full = true
	e.tail = append(e.tail, x)
	e.tailBytes += n
	for int64(len(e.head)+len(e.tail)) > e.maxItems || e.tailBytes > e.room() {
		e.evict()
	}
}

// half is the part of a bound that the last items have for themselves.
func half(bound int64) int64 { return max(1, bound/2) }

// room is how many bytes an item may have that does not go to the head.
func (e *ends[T]) room() int64 { return e.maxBytes - e.headBytes }

func (e *ends[T]) evict() {
	var none T
	n := e.size(e.tail[0])
	e.tail[0] = none
	e.tail = e.tail[1:]
	e.tailBytes -= n
	e.lose(1, uint64(n))
}

// lose counts what was left out between head and tail. The head takes no more after it.
func (e *ends[T]) lose(items, bytes uint64) {
	e.full = true
	e.lost.Lines, e.lost.Bytes = saturate(e.lost.Lines, items), saturate(e.lost.Bytes, bytes)
}

// any tells whether something was left out.
func (e *ends[T]) any() bool { return e.lost != protocol.Truncated{} }

// list returns what is kept, with marker in between where something was left out.
func (e *ends[T]) list(marker func(lost protocol.Truncated) T) []T {
	if !e.any() {
		return append(e.head, e.tail...)
	}
	return append(append(e.head, marker(e.lost)), e.tail...)
}
