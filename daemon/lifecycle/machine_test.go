package lifecycle

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

var states = States()

var events = []Event{
	BootFailed, WorkersReady, CheckFailed, CheckPassed, Opened, ListenerFailed, MaintenanceEntered, MaintenanceLeft,
	ReloadBegan, ReloadEnded, Stop, Hurry, Cut, DelayOver, Drained, Ended, EndedBadly,
}

// rows are all transitions there are, written down a second time: state, event, next state.
const rows = `
booting workers_ready checking
booting boot_failed closing
booting stop closing
checking check_passed opening
checking check_failed closing
checking stop closing
opening opened ready
opening maintenance_entered maintenance
opening listener_failed closing
opening stop closing
ready maintenance_entered maintenance
ready reload_began ready
ready reload_ended ready
ready listener_failed draining
ready stop drain_delay
maintenance maintenance_entered maintenance
maintenance maintenance_left ready
maintenance reload_began maintenance
maintenance reload_ended maintenance
maintenance listener_failed draining
maintenance stop draining
drain_delay delay_over draining
drain_delay reload_ended drain_delay
drain_delay listener_failed draining
drain_delay hurry hurrying
drain_delay cut failed
draining drained closing
draining reload_ended draining
draining stop hurrying
draining hurry hurrying
draining cut failed
hurrying drained closing
hurrying reload_ended hurrying
hurrying hurry hurrying
hurrying cut failed
closing ended stopped
closing ended_badly failed
closing reload_ended closing
closing stop closing
closing hurry closing
closing cut failed
`

// in is a machine in a state of the test's choice.
func in(s State) *Machine {
	m := New()
	m.last.To = s
	return m
}

// TestTransitions goes through every event in every state.
func TestTransitions(t *testing.T) {
	want := map[[2]string]string{}
	for line := range strings.Lines(strings.TrimSpace(rows)) {
		f := strings.Fields(line)
		want[[2]string{f[0], f[1]}] = f[2]
	}
	for _, s := range states {
		for _, e := range events {
			t.Run(string(s)+"/"+string(e), func(t *testing.T) {
				m := in(s)
				var heard []Transition
				m.Subscribe(func(tr Transition) { heard = append(heard, tr) })
				next, legal := want[[2]string{string(s), string(e)}]
				got, err := m.Fire(e, "why", "who")
				if !legal {
					if err == nil || m.State() != s || len(heard) != 0 {
						t.Errorf("went to %s, %v, and told %v", m.State(), err, heard)
					}
					return
				}
				if err != nil || m.State() != State(next) {
					t.Fatalf("went to %s, %v, want %s", m.State(), err, next)
				}
				if got.From != s || got.To != State(next) || got.Event != e || got.Reason != "why" || got.Who != "who" || got.Time.IsZero() {
					t.Errorf("the transition is %+v", got)
				}
				if len(heard) != 1 || heard[0] != got || m.Last() != got {
					t.Errorf("told %v, last is %v", heard, m.Last())
				}
			})
		}
	}
	if len(want) != strings.Count(rows, "\n")-1 || len(table) != len(states) {
		t.Error("a row stands there twice, or a state is not listed")
	}
}

// Every state can be reached, and from each the service can end.
func TestEveryStateLeadsToAnEnd(t *testing.T) {
	reach := func(from State) map[State]bool {
		seen, todo := map[State]bool{from: true}, []State{from}
		for len(todo) > 0 {
			s := todo[0]
			todo = todo[1:]
			for next := range maps.Values(table[s]) {
				if !seen[next] {
					seen[next] = true
					todo = append(todo, next)
				}
			}
		}
		return seen
	}
	fromStart := reach(Booting)
	for _, s := range states {
		if !fromStart[s] {
			t.Errorf("%s is never reached", s)
		}
		if to := reach(s); !s.Final() && !(to[Stopped] && to[Failed]) {
			t.Errorf("from %s there is no way to both ends", s)
		}
	}
}

// A request to stop, the next, and the one after: none is lost on the way, whatever the service is doing.
func TestEveryStopIsHeard(t *testing.T) {
	for _, s := range states {
		if s.Final() {
			continue
		}
		for _, e := range []Event{Stop, Hurry, Cut} {
			stopping := slices.Contains([]State{DrainDelay, Draining, Hurrying, Closing}, s)
			if _, ok := Next(s, e); !ok && (e == Stop) == !stopping {
				t.Errorf("%s is not heard while %s", e, s)
			}
		}
	}
}

func TestProperties(t *testing.T) {
	for _, s := range states {
		if got, want := s.Ready(), s == Ready; got != want {
			t.Errorf("%s: ready %t", s, got)
		}
		if got, want := s.Admits(), s == Ready || s == DrainDelay; got != want {
			t.Errorf("%s: admits %t", s, got)
		}
		if got, want := s.Final(), len(table[s]) == 0; got != want {
			t.Errorf("%s: final %t", s, got)
		}
	}
}

func TestSubscribeAndWait(t *testing.T) {
	m := New()
	var first, second []Event
	m.Subscribe(func(tr Transition) { first = append(first, tr.Event) })
	leave := m.Subscribe(func(tr Transition) { second = append(second, tr.Event) })
	got := make(chan State, 1)
	go func() {
		s, _ := m.Wait(t.Context(), State.Ready)
		got <- s
	}()
	for _, e := range []Event{WorkersReady, CheckPassed} {
		_, _ = m.Fire(e, "", "")
	}
	leave()
	_, _ = m.Fire(Opened, "", "")
	if s := <-got; s != Ready {
		t.Errorf("waited for %s", s)
	}
	if !slices.Equal(first, []Event{WorkersReady, CheckPassed, Opened}) || !slices.Equal(second, first[:2]) {
		t.Errorf("told %v and %v", first, second)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := m.Wait(ctx, State.Final); !errors.Is(err, context.Canceled) || s != Ready {
		t.Errorf("waited for %s, %v", s, err)
	}
}

func TestUntil(t *testing.T) {
	m := New()
	passed, release := m.Until(t.Context(), func(s State) bool { return s == Checking })
	defer release()
	if passed.Err() != nil {
		t.Error("it ended before")
	}
	_, _ = m.Fire(WorkersReady, "", "")
	<-passed.Done()
	at, release := m.Until(t.Context(), func(s State) bool { return s == Checking })
	defer release()
	<-at.Done()
	never, release := m.Until(t.Context(), State.Final)
	release()
	<-never.Done()
	if len(m.observers) != 2 {
		t.Errorf("%d observers are left", len(m.observers))
	}
}

// However many fire at once, each observer hears a chain: every transition begins where the one before ended.
func TestObserversHearAChain(t *testing.T) {
	m := in(Ready)
	var heard []Transition
	m.Subscribe(func(tr Transition) { heard = append(heard, tr) })
	var firing sync.WaitGroup
	for range 8 {
		firing.Go(func() {
			for range 100 {
				_, _ = m.Fire(MaintenanceEntered, "", "")
				_, _ = m.Fire(MaintenanceLeft, "", "")
			}
		})
	}
	firing.Wait()
	at := Ready
	for _, tr := range heard {
		if tr.From != at {
			t.Fatalf("%s to %s after %s", tr.From, tr.To, at)
		}
		at = tr.To
	}
	if at != m.State() || len(heard) < 800 {
		t.Errorf("heard %d transitions to %s, is %s", len(heard), at, m.State())
	}
}
