package admin

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/daemon/events"
)

// kept are the events that the app has, over the socket.
func (b *bench) kept(kinds ...string) (list []events.Event) {
	b.t.Helper()
	err := b.Watch(b.t.Context(), EventFilter{Kept: true, Kinds: kinds}, func(e events.Event) error {
		list = append(list, e)
		return nil
	}, func(m Missed) error {
		b.t.Errorf("%d were missed", m.Missed)
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

func TestEventsOfARealLife(t *testing.T) {
	b := start(t, nil)
	if o := <-b.run("mine", "await 0; throw new Error('no')"); o.Error == nil {
		t.Fatal("it ended well")
	}
	if _, err := b.Retire(t.Context(), "worker-1"); err != nil {
		t.Fatal(err)
	}
	seen := map[events.Kind]events.Event{}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done := errors.New("done")
	err := b.Watch(ctx, EventFilter{Kept: true, Follow: true}, func(e events.Event) error {
		seen[e.Kind] = e
		if e.Kind == events.WorkerRetired {
			return done
		}
		return nil
	}, func(Missed) error { return errors.New("events were missed") })
	if err != done {
		t.Fatal(err)
	}
	if e := seen[events.ExecutionFailed]; e.CallerID != "mine" || e.Type != "exception" || e.Worker != "worker-1" || e.Session == "" {
		t.Errorf("%+v", e)
	}
	if e := seen[events.WorkerRetired]; e.Worker != "worker-1" || e.PID == 0 {
		t.Errorf("%+v", e)
	}
	if e := seen[events.WorkerReady]; e.Worker != "worker-2" {
		t.Errorf("%+v", e)
	}
	x, err := b.Execution(t.Context(), seen[events.ExecutionFailed].Execution)
	if err != nil || x.CallerID != "mine" {
		t.Errorf("the event's execution is %+v, %v", x, err)
	}
}

func TestEventsResume(t *testing.T) {
	b := start(t, nil)
	first := b.ring.Last()
	for range 3 {
		b.ring.Publish(events.Event{Kind: events.Reloaded})
	}
	id := b.ring.Instance() + "-"
	_, _, text := b.request("GET", "/v1/events?follow=false", "", "Last-Event-ID", id+"0")
	if n := strings.Count(string(text), "\ndata: "); n != int(first)+3 {
		t.Errorf("%d events from the beginning: %s", n, text)
	}
	_, _, text = b.request("GET", "/v1/events?follow=false&after=0", "", "Last-Event-ID", id+strconv.FormatUint(first+2, 10))
	if !strings.HasPrefix(string(text), ": ") || strings.Count(string(text), "data: ") != 1 || !strings.Contains(string(text), "\nid: "+id+strconv.FormatUint(first+3, 10)+"\nevent: reloaded\ndata: {") {
		t.Errorf("after the second: %s", text)
	}
	_, _, text = b.request("GET", "/v1/events?follow=false", "", "Last-Event-ID", "OTHER-7")
	if !strings.Contains(string(text), "event: missed\ndata: {\"missed\":0,\"restarted\":true}\n\n") || strings.Count(string(text), "id: ") != int(first)+3 {
		t.Errorf("after a restart: %s", text)
	}
	_, _, text = b.request("GET", "/v1/events?follow=false", "")
	if strings.Contains(string(text), "data:") {
		t.Errorf("from now on: %s", text)
	}
	if list := b.kept("reloaded"); len(list) != 3 {
		t.Errorf("%d of that kind", len(list))
	}
}

// A client that does not read holds nobody up, and hears how much it missed when it reads again.
func TestSlowWatchersAreTold(t *testing.T) {
	b := start(t, func(b *bench, c *Config) {
		b.ring = events.New(64)
		c.Events = b.ring
	})
	c, err := net.Dial("unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET /v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	detail := strings.Repeat("x", events.MaxTextBytes)
	for range 200 { // of each kind, for one alone would be held back; more than a socket has room for
		for _, k := range events.Kinds() {
			b.ring.Publish(events.Event{Kind: k, Detail: detail, Reason: detail, Identity: detail})
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "event: missed") {
			return
		}
	}
}

// The end of the service ends the streams.
func TestStreamsEndWithTheService(t *testing.T) {
	b := start(t, nil)
	watching, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		ended <- b.Watch(context.Background(), EventFilter{Kept: true, Follow: true}, func(events.Event) error {
			watching <- struct{}{}
			return nil
		}, func(Missed) error { return nil })
	}()
	<-watching
	b.stop()
	if err := <-ended; err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	b := start(t, nil)
	for range maxStreams {
		c, err := net.Dial("unix", b.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Write([]byte("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if _, response, text := b.request("GET", "/v1/events", ""); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s", response.StatusCode, text)
	}
	if _, err := b.Status(t.Context()); err != nil {
		t.Errorf("the rest of the app: %v", err)
	}
}
