package events

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/protocol"
)

// next reads what is there.
func next(t *testing.T, s *Subscription) ([]Event, uint64) {
	t.Helper()
	list, missed, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list, missed
}

func TestEventsAreNumberedAndReadOnce(t *testing.T) {
	r := New(8)
	s := r.Subscribe(0)
	r.Publish(Event{Kind: WorkerStarted, Worker: "worker-1"})
	r.Publish(Event{Kind: WorkerReady, Worker: "worker-1"})
	list, missed := next(t, s)
	if len(list) != 2 || missed != 0 || list[0].ID != 1 || list[1].ID != 2 || list[1].Kind != WorkerReady || list[0].Time.IsZero() {
		t.Fatalf("%+v, %d missed", list, missed)
	}
	r.Publish(Event{Kind: WorkerRetired})
	if list, _ = next(t, s); len(list) != 1 || list[0].ID != 3 {
		t.Errorf("%+v", list)
	}
	if list, _ = next(t, r.Subscribe(2)); len(list) != 1 || list[0].ID != 3 {
		t.Errorf("resumed after 2: %+v", list)
	}
	late := r.Subscribe(99)
	r.Publish(Event{Kind: DrainBegan})
	if list, _ = next(t, late); len(list) != 1 || list[0].ID != 4 {
		t.Errorf("subscribed ahead: %+v", list)
	}
}

// A reader that is too slow does not hold anybody up, and is told what it missed.
func TestSlowReadersAreToldWhatTheyMissed(t *testing.T) {
	r := New(4)
	s := r.Subscribe(0)
	for range 10 {
		r.Publish(Event{Kind: WorkerReady})
	}
	list, missed := next(t, s)
	if missed != 6 || len(list) != 4 || list[0].ID != 7 {
		t.Errorf("%d missed, %+v", missed, list)
	}
}

func TestWaitingEndsWithTheContextAndTheRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(4)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { _, _, err := r.Subscribe(0).Next(ctx); ended <- err }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		s := r.Subscribe(0)
		go func() { _, _, err := s.Next(t.Context()); ended <- err }()
		synctest.Wait()
		r.Close()
		if err := <-ended; err != io.EOF {
			t.Errorf("got %v", err)
		}
		r.Publish(Event{Kind: WorkerReady})
		if r.Last() != 0 {
			t.Error("a closed ring took an event")
		}
	})
}

func TestWaitingSeesWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(4)
		got := make(chan []Event, 1)
		go func() { list, _ := next(t, r.Subscribe(0)); got <- list }()
		synctest.Wait()
		r.Publish(Event{Kind: Reloaded})
		if list := <-got; len(list) != 1 || list[0].Kind != Reloaded {
			t.Errorf("%+v", list)
		}
	})
}

// Whoever floods the ring with one kind does not push the others out.
func TestOneKindDoesNotFloodTheRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Size)
		r.Publish(Event{Kind: WorkerCrashed})
		for range 100_000 {
			r.Publish(Event{Kind: AuthFailed})
		}
		list, missed := next(t, r.Subscribe(0))
		if missed != 0 || list[0].Kind != WorkerCrashed || len(list) != 1+burst {
			t.Fatalf("%d events, %d missed", len(list), missed)
		}
		time.Sleep(time.Second)
		r.Publish(Event{Kind: AuthFailed})
		list, _ = next(t, r.Subscribe(r.Last()-1))
		if list[0].Omitted != 100_000-burst {
			t.Errorf("%d are said to be left out", list[0].Omitted)
		}
		for range 100 {
			r.Publish(Event{Kind: AuthFailed})
		}
		if list, _ = next(t, r.Subscribe(0)); len(list) != 1+burst+perSec {
			t.Errorf("%d events after a second", len(list))
		}
	})
}

func TestTextsAreBounded(t *testing.T) {
	r := New(4)
	r.Publish(Event{Kind: ExecutionFailed, Reason: strings.Repeat("é", 1000), Identity: strings.Repeat("x", 1000)})
	list, _ := next(t, r.Subscribe(0))
	if e := list[0]; len(e.Reason) > MaxTextBytes || len(e.Identity) != MaxTextBytes || !strings.HasSuffix(e.Reason, "é") {
		t.Errorf("texts of %d and %d bytes", len(e.Reason), len(e.Identity))
	}
}

// An overload is two events, however many requests it turns away.
func TestAnOverloadHasTwoEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(16)
		f := NewFeed(r)
		for range 50 {
			f.Pool(pool.Event{Kind: pool.Overload, Time: time.Now(), Identity: "a", Type: protocol.Overloaded})
			time.Sleep(quiet / 10)
		}
		if r.Last() != 1 {
			t.Errorf("%d events in the overload", r.Last())
		}
		time.Sleep(2 * quiet)
		f.Pool(pool.Event{Kind: pool.Overload, Time: time.Now(), Type: protocol.QueueTimeout})
		list, _ := next(t, r.Subscribe(0))
		if len(list) != 3 || list[0].Kind != OverloadBegan || list[1].Kind != OverloadEnded || list[1].Count != 50 ||
			list[1].TookMs != 9800 || list[2].Kind != OverloadBegan {
			t.Errorf("%+v", list)
		}
		time.Sleep(2 * quiet)
	})
}

// What a pool tells is passed on, under the name of its kind here.
func TestEventsOfThePool(t *testing.T) {
	r := New(16)
	f := NewFeed(r)
	known := map[Kind]bool{}
	for _, k := range Kinds() {
		known[k] = true
	}
	for _, k := range []pool.EventKind{
		pool.WorkerStarted, pool.WorkerReady, pool.WorkerFailed, pool.WorkerCrashed, pool.WorkerStopped, pool.WorkerRetired, pool.ExecutionFailed, pool.RetainedLost,
	} {
		f.Pool(pool.Event{Kind: k, Worker: "worker-1", Execution: "mine", ID: "P-1", Took: 1500 * time.Microsecond})
		list, _ := next(t, r.Subscribe(r.Last()-1))
		if e := list[0]; !known[e.Kind] || string(e.Kind) != string(k) || e.Execution != "P-1" || e.CallerID != "mine" || e.TookMs != 1.5 {
			t.Errorf("%s is told as %+v", k, e)
		}
	}
}

// docs/operations.md has a row for each kind, and for no other.
func TestEventsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| event | means |")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []Kind
	for row := range strings.Lines(table) {
		names, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(names, -1) {
			listed = append(listed, Kind(name[1]))
		}
	}
	if !slices.Equal(listed, Kinds()) {
		t.Errorf("the page lists\n%q, but the kinds are\n%q", listed, Kinds())
	}
}
