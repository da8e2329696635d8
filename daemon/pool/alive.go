package pool

import (
	"context"
	"errors"
)

// Alive returns nil once the scheduler has done a round, and some worker's frames arrive: what a watchdog should ask. A
// pool that is busy is alive, as is one whose workers do not start, for a new process would fare no better. Its error
// comes when ctx ends.
func (p *Pool) Alive(ctx context.Context) error {
	went := make(chan struct{})
	go func() { // what is stuck may hold the lock
		p.mu.Lock()
		round := p.rounded
		p.mu.Unlock()
		p.poke()
		select {
		case <-round:
			close(went)
		case <-p.closing:
			close(went)
		case <-ctx.Done():
		}
	}()
	select {
	case <-went:
		return p.heard()
	case <-ctx.Done():
		return errors.New("the pool's scheduler does not go round")
	}
}

// heard says that all workers are silent, although readers see to it that those end.
func (p *Pool) heard() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := p.outside.now().Add(-2 * p.config().HeartbeatTimeout)
	silent := 0
	for m := range p.members {
		if m.state == starting || m.state == leaving || m.born.After(oldest) {
			continue
		}
		if m.heard.Load() > oldest.UnixNano() {
			return nil
		}
		silent++
	}
	if silent > 0 {
		return errors.New("no worker's frames are read")
	}
	return nil
}
