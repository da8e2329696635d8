package server

import "sync"

// quota counts what each identity holds of one thing.
type quota struct {
	mu   sync.Mutex
	held map[string]int
}

// take counts one more; false, and nothing changes, where that would pass the limit.
func (q *quota) take(identity string, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held[identity] >= limit {
		return false
	}
	if q.held == nil {
		q.held = map[string]int{}
	}
	q.held[identity]++
	return true
}

func (q *quota) count(identity string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held[identity]
}

func (q *quota) give(identity string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held[identity]--; q.held[identity] <= 0 {
		delete(q.held, identity)
	}
}
