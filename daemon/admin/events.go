package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/ipc/protocol"
)

// Missed is the data of the server-sent event of that name, which tells that there were events that are not kept any more.
type Missed struct {
	Missed    uint64 `json:"missed"`    // how many; unknown, and 0, after a restart
	Restarted bool   `json:"restarted"` // the service was started since the event that the client had last
}

// missedName is the type of a server-sent event with a Missed.
const missedName = "missed"

// idleEvery is how often a stream without news says that it is there.
const idleEvery = 15 * time.Second

var eventFilter = []Query{
	{"after", "Begin with what is kept after the event of this number; 0 for all that is kept. Without it, or the header Last-Event-ID, with what comes.", 0},
	{"kind", "Only these kinds, several with commas.", []string(nil)},
	{"follow", "false ends the stream where nothing is left to tell.", true},
}

// EventFilter says which events to watch.
type EventFilter struct {
	Kept   bool     // those that are kept too, and not only those that come
	After  uint64   // of the kept ones, those after the event of this number
	Kinds  []string // only these; empty for all
	Follow bool     // wait for those that come
}

func (f EventFilter) query() string {
	q := url.Values{}
	if f.Kept {
		q.Set("after", strconv.FormatUint(f.After, 10))
	}
	if len(f.Kinds) > 0 {
		q.Set("kind", strings.Join(f.Kinds, ","))
	}
	if !f.Follow {
		q.Set("follow", "false")
	}
	return q.Encode()
}

// stream is an answer with server-sent events.
type stream struct {
	app       *App
	from      *events.Subscription
	kinds     []string
	follow    bool
	restarted bool
}

func (a *App) events(c *call) (any, error) {
	q := c.URL.Query()
	if err := known(q, eventFilter); err != nil {
		return nil, err
	}
	s := &stream{app: a, kinds: words(q.Get("kind")), follow: true}
	for _, k := range s.kinds {
		if !slices.Contains(events.Kinds(), events.Kind(k)) {
			return nil, protocol.FieldError("kind", "there is no kind of event %.40q", k)
		}
	}
	var err error
	if text := q.Get("follow"); text != "" {
		if s.follow, err = strconv.ParseBool(text); err != nil {
			return nil, protocol.FieldError("follow", "must be true or false, not %.40q", text)
		}
	}
	after := a.cfg.Events.Last()
	if text := q.Get("after"); text != "" {
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, protocol.FieldError("after", "must be the number of an event, not %.40q", text)
		}
	}
	if id := c.Header.Get("Last-Event-ID"); id != "" { // a browser sends it when it comes again, with the URL as it was
		if after, s.restarted, err = a.resume(id); err != nil {
			return nil, err
		}
	}
	s.from = a.cfg.Events.Subscribe(after)
	return s, nil
}

// resume reads the id of a server-sent event.
func (a *App) resume(id string) (after uint64, restarted bool, err error) {
	instance, number, ok := strings.Cut(id, "-")
	after, err = strconv.ParseUint(number, 10, 64)
	switch {
	case !ok || err != nil:
		return 0, false, protocol.FieldError("Last-Event-ID", "%.60q is the id of no event", id)
	case instance != a.cfg.Events.Instance():
		return 0, true, nil
	}
	return after, false, nil
}

// ServeHTTP streams until the client leaves or the service ends.
func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.app.streams.Add(1) > maxStreams {
		s.app.streams.Add(-1)
		answerError(w, protocol.Errorf(protocol.Overloaded, "%d streams of events are open, which is the limit", maxStreams))
		return
	}
	defer s.app.streams.Add(-1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() { // the end of the service
		select {
		case <-s.app.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	w.Header().Set("Content-Type", string(eventStream))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	out := &eventWriter{w: w, control: http.NewResponseController(w), instance: s.app.cfg.Events.Instance()}
	out.comment("executord events")
	if s.restarted {
		out.missed(Missed{Restarted: true})
	}
	for out.err == nil && s.next(ctx, out) {
	}
}

// next writes what comes; false at the end.
func (s *stream) next(ctx context.Context, out *eventWriter) bool {
	wait := idleEvery
	if !s.follow {
		wait = 0
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	fresh, missed, err := s.from.Next(waiting)
	switch {
	case err == io.EOF || ctx.Err() != nil && len(fresh) == 0:
		return false
	case err != nil && !s.follow:
		return false
	case err != nil:
		out.comment("nothing new")
	}
	if missed > 0 {
		out.missed(Missed{Missed: missed})
	}
	for _, e := range fresh {
		if len(s.kinds) == 0 || slices.Contains(s.kinds, string(e.Kind)) {
			out.event(e)
		}
	}
	out.flush()
	return true
}

// eventWriter writes server-sent events. The first error stays.
type eventWriter struct {
	w        io.Writer
	control  *http.ResponseController
	instance string
	err      error
}

func (o *eventWriter) write(format string, args ...any) {
	if o.err == nil {
		_ = o.control.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, o.err = fmt.Fprintf(o.w, format, args...)
	}
}

func (o *eventWriter) flush() {
	if o.err == nil {
		o.err = o.control.Flush()
	}
}

func (o *eventWriter) comment(text string) {
	o.write(": %s\n\n", text)
	o.flush()
}

func (o *eventWriter) missed(m Missed) {
	text, _ := json.Marshal(m)
	o.write("event: %s\ndata: %s\n\n", missedName, text)
}

func (o *eventWriter) event(e events.Event) {
	text, err := json.Marshal(e)
	if err != nil {
		o.err = err
		return
	}
	o.write("id: %s-%d\nevent: %s\ndata: %s\n\n", o.instance, e.ID, e.Kind, text)
}

// maxEventBytes bounds one line of a stream.
const maxEventBytes = 64 << 10

// Watch calls each with every event, and missed where some are not kept any more, until ctx ends, the stream ends, or a
// callback fails.
func (c *Client) Watch(ctx context.Context, f EventFilter, each func(events.Event) error, missed func(Missed) error) error {
	response, err := c.do(ctx, http.MethodGet, "/v1/events?"+f.query(), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	err = readStream(response.Body, each, missed)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// readStream reads server-sent events until their end.
func readStream(in io.Reader, each func(events.Event) error, missed func(Missed) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxEventBytes)
	kind := ""
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(": "))
		switch string(name) {
		case "event":
			kind = string(value)
		case "data":
			if err := deliver(kind, value, each, missed); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

func deliver(kind string, data []byte, each func(events.Event) error, missed func(Missed) error) error {
	if kind == missedName {
		var m Missed
		if err := json.Unmarshal(data, &m); err != nil {
			return fmt.Errorf("cannot read an event: %w", err)
		}
		return missed(m)
	}
	var e events.Event
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("cannot read an event: %w", err)
	}
	return each(e)
}
