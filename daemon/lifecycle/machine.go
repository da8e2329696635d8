package lifecycle

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Transition is one step of a Machine. From and To are the same where the event changed nothing but was news.
type Transition struct {
	From   State
	To     State
	Event  Event
	Reason string // in words, for people; empty where the event says it all
	Who    string // asked for it; empty for the service itself
	Time   time.Time
}

// Machine is the lifecycle of one service. Make it with New.
type Machine struct {
	firing sync.Mutex // held while observers are told, so that each hears everything in order

	mu        sync.Mutex
	last      Transition
	changed   chan struct{} // closed and replaced with each transition
	observers map[*func(Transition)]struct{}
}

// New is a machine in Booting.
func New() *Machine {
	return &Machine{
		last:    Transition{From: Booting, To: Booting, Time: time.Now()},
		changed: make(chan struct{}), observers: map[*func(Transition)]struct{}{},
	}
}

// State is the current one.
func (m *Machine) State() State { return m.Last().To }

// Last is the newest transition. Before the first its event is empty.
func (m *Machine) Last() Transition {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// Fire lets e happen and tells the observers before it returns. An event that cannot happen in the current state changes
// nothing and is an error. An observer must not call Fire.
func (m *Machine) Fire(e Event, reason, who string) (Transition, error) {
	m.firing.Lock()
	defer m.firing.Unlock()
	t, observers, err := m.step(e, reason, who)
	for _, tell := range observers {
		tell(t)
	}
	return t, err
}

func (m *Machine) step(e Event, reason, who string) (t Transition, observers []func(Transition), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := m.last.To
	to, ok := Next(from, e)
	if !ok {
		return m.last, nil, fmt.Errorf("cannot take event %s while %s", e, from)
	}
	m.last = Transition{From: from, To: to, Event: e, Reason: reason, Who: who, Time: time.Now()}
	close(m.changed)
	m.changed = make(chan struct{})
	for tell := range m.observers {
		observers = append(observers, *tell)
	}
	return m.last, observers, nil
}

// Subscribe has observe called with every transition from now on, until unsubscribe is called; one that is under way may
// still arrive after that. An observer holds up the service: it must be quick, and must not call Fire.
func (m *Machine) Subscribe(observe func(Transition)) (unsubscribe func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := &observe
	m.observers[key] = struct{}{}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.observers, key)
	}
}

// Wait returns the first state from now on, the current one included, for which is holds. A state that is left again
// quickly may be missed. Its error is that of ctx.
func (m *Machine) Wait(ctx context.Context, is func(State) bool) (State, error) {
	for {
		m.mu.Lock()
		state, changed := m.last.To, m.changed
		m.mu.Unlock()
		if is(state) {
			return state, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state, context.Cause(ctx)
		}
	}
}

// Until is a context that ends with ctx, or once the machine is in a state for which is holds, now or later. Release it
// with release.
func (m *Machine) Until(ctx context.Context, is func(State) bool) (until context.Context, release context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unsubscribe := m.Subscribe(func(t Transition) {
		if is(t.To) {
			cancel()
		}
	})
	if is(m.State()) {
		cancel()
	}
	return ctx, func() {
		unsubscribe()
		cancel()
	}
}
