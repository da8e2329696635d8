package channel

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// serve runs one server whose accepted connections come out of the channel that it returns.
func serve(t *testing.T, cfg Config) (addr string, accepted <-chan *Conn) {
	t.Helper()
	conns := make(chan *Conn, 16)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, "x", cfg, func(w http.ResponseWriter, status int, _ error) { w.WriteHeader(status) })
		if err != nil {
			t.Error(err)
			return
		}
		conns <- c
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String(), conns
}

func dial(t *testing.T, addr string, cfg Config) *Conn {
	t.Helper()
	c, _, err := Dial(t.Context(), "ws://"+addr+"/", "x", nil, cfg, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Abort("test is over"); <-c.Done() })
	return c
}

// pair returns both ends of one connection.
func pair(t *testing.T, server, client Config) (s, c *Conn) {
	t.Helper()
	addr, accepted := serve(t, server)
	c = dial(t, addr, client)
	s = <-accepted
	t.Cleanup(func() { s.Abort("test is over"); <-s.Done() })
	return s, c
}

// raw is a plain gorilla client for misbehaviour that Conn does not offer.
func raw(t *testing.T, addr string, compress bool) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"x"}, EnableCompression: compress}
	ws, resp, err := d.Dial("ws://"+addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = ws.Close() })
	return ws
}

func wantClose(t *testing.T, err error, code int) {
	t.Helper()
	var e *CloseError
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("ended with %v, want close status %d", err, code)
	}
}

func wantPeerClose(t *testing.T, ws *websocket.Conn, code int) {
	t.Helper()
	_ = ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	for {
		if _, _, err := ws.ReadMessage(); err != nil {
			if !websocket.IsCloseError(err, code) {
				t.Fatalf("peer saw %v, want close status %d", err, code)
			}
			return
		}
	}
}

func TestMessagesArriveInOrderAtBothEnds(t *testing.T) {
	s, c := pair(t, Config{}, Config{})
	sizes := []int{0, 1, 100, 4096, fragmentBytes, fragmentBytes + 1, 1 << 20, 3}
	for _, ends := range []struct{ from, to *Conn }{{s, c}, {c, s}} {
		go func() {
			for i, n := range sizes {
				_ = ends.from.Send(t.Context(), []byte(fmt.Sprint(i)), []byte(strings.Repeat("x", n)))
			}
		}()
		for i, n := range sizes {
			msg, err := ends.to.Receive()
			if err != nil || string(msg) != fmt.Sprint(i)+strings.Repeat("x", n) {
				t.Fatalf("message %d: %d bytes, %v", i, len(msg), err)
			}
		}
	}
}

// W1: two goroutines that write at once must not meet on the socket.
func TestW1ManyWriters(t *testing.T) {
	s, c := pair(t, Config{}, Config{})
	const writers, each = 8, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := s.Send(t.Context(), fmt.Appendf(nil, "%d %d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := make([]int, writers)
	for range writers * each {
		msg, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		var w, i int
		if _, err := fmt.Sscan(string(msg), &w, &i); err != nil || i != next[w] {
			t.Fatalf("got %q, want message %d of writer %d", msg, next[w], w)
		}
		next[w]++
	}
	wg.Wait()
}

// W3: a ping every millisecond from the other side, and pings of our own, while messages flow both ways.
func TestW3PingUnderLoad(t *testing.T) {
	addr, accepted := serve(t, Config{PingInterval: 300 * time.Millisecond})
	ws := raw(t, addr, false)
	s := <-accepted
	const messages = 2000
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = ws.WriteControl(websocket.PingMessage, []byte("p"), time.Now().Add(time.Second))
			case <-stop:
				return
			}
		}
	})
	wg.Go(func() {
		for range messages {
			if err := ws.WriteMessage(websocket.TextMessage, make([]byte, 5000)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Go(func() {
		for range messages {
			if err := s.Send(t.Context(), make([]byte, 50_000)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	got := make(chan int, 1)
	go func() {
		n := 0
		for ; ; n++ {
			if _, err := s.Receive(); err != nil {
				got <- n
				return
			}
		}
	}()
	for range messages {
		if _, _, err := ws.ReadMessage(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(CloseNormal, ""), time.Now().Add(time.Second))
	if n := <-got; n != messages {
		t.Errorf("%d messages came, want %d", n, messages)
	}
}

func TestFaultsOfThePeer(t *testing.T) {
	const limit = 1 << 16
	cases := []struct {
		name string
		send func(ws *websocket.Conn) error
		code int
	}{
		{"binary", func(ws *websocket.Conn) error { return ws.WriteMessage(websocket.BinaryMessage, []byte("{}")) }, CloseUnsupported},
		{"invalid UTF-8", func(ws *websocket.Conn) error { return ws.WriteMessage(websocket.TextMessage, []byte("\xff")) }, CloseInvalidText},
		{"over the limit", func(ws *websocket.Conn) error {
			return ws.WriteMessage(websocket.TextMessage, make([]byte, limit+1))
		}, CloseTooBig},
		{"over the limit in fragments", func(ws *websocket.Conn) error {
			w, _ := ws.NextWriter(websocket.TextMessage)
			for range limit/1000 + 1 {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					return err
				}
			}
			return w.Close()
		}, CloseTooBig},
		{"unmasked frame", func(ws *websocket.Conn) error {
			_, err := ws.UnderlyingConn().Write([]byte{0x81, 1, 'x'})
			return err
		}, websocket.CloseProtocolError},
		{"reserved bit", func(ws *websocket.Conn) error {
			_, err := ws.UnderlyingConn().Write([]byte{0xF1, 0x80, 0, 0, 0, 0})
			return err
		}, websocket.CloseProtocolError},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			addr, accepted := serve(t, Config{MaxMessageBytes: limit})
			ws := raw(t, addr, false)
			s := <-accepted
			if err := tc.send(ws); err != nil {
				t.Fatal(err)
			}
			_, err := s.Receive()
			wantClose(t, err, tc.code)
			wantPeerClose(t, ws, tc.code)
			_ = ws.Close()
			<-s.Done()
		})
	}
}

// A frame that announces more than the limit is refused by its header: the announced bytes never come.
func TestHugeFrameIsRefusedByItsHeader(t *testing.T) {
	addr, accepted := serve(t, Config{})
	ws := raw(t, addr, false)
	s := <-accepted
	header := []byte{0x81, 0xFF, 0, 0, 0, 0, 6, 0x40, 0, 0, 1, 2, 3, 4} // 104,857,600 bytes
	if _, err := ws.UnderlyingConn().Write(header); err != nil {
		t.Fatal(err)
	}
	_, err := s.Receive()
	wantClose(t, err, CloseTooBig)
	wantPeerClose(t, ws, CloseTooBig)
}

// W7: the limit holds for what comes out of decompression, not only for what came in.
func TestW7CompressionBomb(t *testing.T) {
	var packed bytes.Buffer
	z, _ := flate.NewWriter(&packed, flate.BestCompression)
	_, _ = io.CopyN(z, zeroes{}, 16<<20)
	_ = z.Close()
	addr, accepted := serve(t, Config{Compress: true, MaxMessageBytes: 1 << 20})
	ws := raw(t, addr, true)
	s := <-accepted
	frame := append([]byte{0xC1, 0xFF, 0, 0, 0, 0, byte(packed.Len() >> 24), byte(packed.Len() >> 16), byte(packed.Len() >> 8), byte(packed.Len()), 0, 0, 0, 0}, packed.Bytes()...)
	if packed.Len() > 1<<20 {
		t.Fatalf("the bomb has %d bytes and would be refused by its size", packed.Len())
	}
	go func() { _, _ = ws.UnderlyingConn().Write(frame) }()
	_, err := s.Receive()
	wantClose(t, err, CloseTooBig)
	wantPeerClose(t, ws, CloseTooBig)
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestCompressedMessages(t *testing.T) {
	s, c := pair(t, Config{Compress: true}, Config{Compress: true})
	for _, n := range []int{10, compressFrom, 1 << 20} {
		want := strings.Repeat("abc ", n)
		for _, ends := range []struct{ from, to *Conn }{{s, c}, {c, s}} {
			go func() { _ = ends.from.Send(t.Context(), []byte(want)) }()
			if msg, err := ends.to.Receive(); err != nil || string(msg) != want {
				t.Fatalf("%d bytes, %v", len(msg), err)
			}
		}
	}
}

// W5: a peer that reads slowly but steadily keeps its connection though one message takes many write deadlines.
func TestW5SlowReaderSurvives(t *testing.T) {
	cfg := Config{WriteStall: 500 * time.Millisecond, PingInterval: 500 * time.Millisecond}
	s, ws := slowPair(t, cfg)
	go receiveAll(s)
	want := 8 << 20
	began := time.Now()
	if err := s.Send(t.Context(), bytes.Repeat([]byte("x"), want)); err != nil {
		t.Fatal(err)
	}
	_, msg, err := ws.ReadMessage()
	if err != nil || len(msg) != want {
		t.Fatalf("%d bytes, %v", len(msg), err)
	}
	if took := time.Since(began); took < 3*cfg.WriteStall {
		t.Fatalf("the message took only %v: nothing was slow", took)
	}
}

func receiveAll(c *Conn) {
	for {
		if _, err := c.Receive(); err != nil {
			return
		}
	}
}

// slowPair connects over a unix socket, whose buffers are small and fixed, with a client that reads about 3 MB/s.
func slowPair(t *testing.T, cfg Config) (*Conn, *websocket.Conn) {
	t.Helper()
	conns := make(chan *Conn, 1)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, "x", cfg, func(w http.ResponseWriter, status int, _ error) { w.WriteHeader(status) })
		if err != nil {
			t.Error(err)
			return
		}
		conns <- c
	}))
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	slow := &slowConn{Conn: conn, pause: 20 * time.Millisecond, max: 64 << 10}
	d := websocket.Dialer{
		Subprotocols: []string{"x"}, ReadBufferSize: slow.max,
		NetDial: func(string, string) (net.Conn, error) { return slow, nil },
	}
	ws, _, err := d.Dial("ws://local/", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := <-conns
	t.Cleanup(func() { _ = ws.Close(); s.Abort("test is over"); <-s.Done() })
	return s, ws
}

type slowConn struct {
	net.Conn
	pause time.Duration
	max   int
}

func (s *slowConn) Read(p []byte) (int, error) {
	timer := time.NewTimer(s.pause) // the pace of the peer is what is tested
	defer timer.Stop()
	<-timer.C
	return s.Conn.Read(p[:min(len(p), s.max)])
}

func TestStalledReaderIsDropped(t *testing.T) {
	addr, accepted := serve(t, Config{WriteStall: 100 * time.Millisecond, QueueBytes: 1 << 20})
	raw(t, addr, false) // never reads
	s := <-accepted
	var err error
	for err == nil {
		err = s.Send(t.Context(), make([]byte, 1<<20))
	}
	if !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	<-s.Done()
	_, err = s.Receive()
	wantClose(t, err, CloseLost)
}

func TestSilentPeerIsDropped(t *testing.T) {
	addr, accepted := serve(t, Config{PingInterval: 50 * time.Millisecond})
	began := time.Now()
	raw(t, addr, false) // answers pings only while it reads, and it does not
	s := <-accepted
	_, err := s.Receive()
	wantClose(t, err, CloseLost)
	<-s.Done()
	if took := time.Since(began); took > 100*50*time.Millisecond { // far from two intervals on the slowest machine
		t.Errorf("it took %s", took)
	}
}

// W11: the owner of a connection may be stuck; pings of the peer are still answered as long as it receives, and its
// own pings still go out.
func TestW11ControlFramesInsideLongMessages(t *testing.T) {
	s, ws := slowPair(t, Config{PingInterval: 100 * time.Millisecond})
	pings := 0
	ws.SetPingHandler(func(p string) error {
		pings++
		return ws.WriteControl(websocket.PongMessage, []byte(p), time.Now().Add(time.Second))
	})
	go receiveAll(s)
	go func() { _ = s.Send(t.Context(), bytes.Repeat([]byte("x"), 8<<20)) }()
	_, r, err := ws.NextReader()
	if err != nil {
		t.Fatal(err)
	}
	before := pings
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	if pings == before {
		t.Fatal("no ping came inside the long message")
	}
}

// W9: every end has its close status.
func TestW9CloseStatus(t *testing.T) {
	t.Run("what is queued leaves before the close frame", func(t *testing.T) {
		s, c := pair(t, Config{}, Config{})
		go receiveAll(s)
		for range 100 {
			_ = s.Send(t.Context(), make([]byte, 1000))
		}
		s.Close(CloseGoingAway, "draining")
		if err := s.Send(t.Context(), nil); !errors.Is(err, ErrClosed) {
			t.Fatalf("Send after Close: %v", err)
		}
		for range 100 {
			if _, err := c.Receive(); err != nil {
				t.Fatal(err)
			}
		}
		_, err := c.Receive()
		wantClose(t, err, CloseGoingAway)
		<-c.Done()
		<-s.Done()
	})
	t.Run("the peer's status is echoed", func(t *testing.T) {
		addr, accepted := serve(t, Config{})
		ws := raw(t, addr, false)
		s := <-accepted
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4001, "mine"), time.Now().Add(time.Second))
		_, err := s.Receive()
		wantClose(t, err, 4001)
		wantPeerClose(t, ws, 4001)
		<-s.Done()
	})
	t.Run("a lost socket", func(t *testing.T) {
		s, c := pair(t, Config{}, Config{})
		c.Abort("pulled the plug")
		_, err := s.Receive()
		wantClose(t, err, CloseLost)
		<-s.Done()
	})
	t.Run("a peer that never answers the close frame", func(t *testing.T) {
		addr, accepted := serve(t, Config{CloseWait: 50 * time.Millisecond})
		raw(t, addr, false)
		s := <-accepted
		s.Close(CloseNormal, "")
		<-s.Done()
	})
}

// TestQueuedMessagesWait: they leave, in order, with the next message, when they are hurried, and when the end comes.
func TestQueuedMessagesWait(t *testing.T) {
	for name, leave := range map[string]func(*Conn) error{
		"a message": func(c *Conn) error { return c.Send(t.Context(), []byte("3")) },
		"hurried":   func(c *Conn) error { c.Outbox().Hurry(); return nil },
		"the end":   func(c *Conn) error { c.Close(CloseNormal, ""); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s, c := pair(t, Config{}, Config{})
			for _, text := range []string{"1", "2"} {
				if !s.Outbox().TryQueue([]byte(text)) {
					t.Fatal("no room")
				}
			}
			if s.Outbox().empty() {
				t.Error("they left at once")
			}
			if err := leave(s); err != nil {
				t.Fatal(err)
			}
			want := []string{"1", "2"}
			if name == "a message" {
				want = append(want, "3")
			}
			for _, text := range want {
				if got, err := c.Receive(); err != nil || string(got) != text {
					t.Fatalf("got %q, %v, want %s", got, err, text)
				}
			}
		})
	}
}

func TestSendWaitsForRoomAndHeedsItsContext(t *testing.T) {
	o, c := looseOutbox(10)
	if w, ok := o.push(message{make([]byte, 100)}, true, true); w != nil || !ok {
		t.Fatal("a message over the bound does not fit an empty outbox")
	}
	second, ok := o.push(message{[]byte("2")}, true, true)
	if second == nil || !ok {
		t.Fatal("a full outbox took a message")
	}
	third, _ := o.push(message{[]byte("3")}, true, true)
	if _, ok := o.push(message{[]byte("4")}, false, true); ok {
		t.Fatal("TrySend overtook a waiter")
	}
	if !o.leave(second) {
		t.Fatal("a waiter cannot leave")
	}
	msg, _ := o.pop(c)
	o.written(c, msg)
	<-third.settled
	if o.leave(third) {
		t.Fatal("an admitted waiter left")
	}
	if msg, _ := o.pop(c); string(msg[0]) != "3" {
		t.Fatalf("popped %q", msg)
	}
}

// gatedConn counts writes, and holds up the first one after the handshake until the gate opens.
type gatedConn struct {
	net.Conn
	gate   chan struct{}
	writes atomic.Int64
}

func (g *gatedConn) Write(p []byte) (int, error) {
	if g.writes.Add(1) == 2 {
		<-g.gate
	}
	return g.Conn.Write(p)
}

func TestSmallMessagesLeaveTogether(t *testing.T) {
	addr, accepted := serve(t, Config{})
	g := &gatedConn{gate: make(chan struct{})}
	c, _, err := Dial(t.Context(), "ws://"+addr+"/", "x", nil, Config{}, func(context.Context) (net.Conn, error) {
		conn, err := net.Dial("tcp", addr)
		g.Conn = conn
		return g, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { c.Abort("test is over"); <-c.Done() }()
	s := <-accepted
	defer func() { s.Abort("test is over"); <-s.Done() }()
	const messages = 100
	for range messages {
		if err := c.Send(t.Context(), []byte("small")); err != nil {
			t.Fatal(err)
		}
	}
	close(g.gate)
	for range messages {
		if msg, err := s.Receive(); err != nil || string(msg) != "small" {
			t.Fatalf("%q, %v", msg, err)
		}
	}
	// The handshake, what was there when the writer woke, and the rest.
	if n := g.writes.Load(); n > 4 {
		t.Errorf("%d messages took %d writes", messages, n)
	}
}

func BenchmarkEcho(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkEcho(b, false) })
	b.Run("numbered", func(b *testing.B) { benchmarkEcho(b, true) })
}

// benchmarkEcho sends messages to and fro. Numbered ones are kept, and acknowledged by a small message now and then.
func benchmarkEcho(b *testing.B, numbered bool) {
	conns := make(chan *Conn, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, "x", Config{}, func(http.ResponseWriter, int, error) {})
		if err == nil {
			conns <- c
		}
	}))
	defer srv.Close()
	c, _, err := Dial(b.Context(), "ws://"+srv.Listener.Addr().String()+"/", "x", nil, Config{}, func(ctx context.Context) (net.Conn, error) {
		return net.Dial("tcp", srv.Listener.Addr().String())
	})
	if err != nil {
		b.Fatal(err)
	}
	s := <-conns
	if numbered {
		c.Outbox().Begin()
		s.Outbox().Begin()
	}
	go func() {
		var got Receipts
		for {
			msg, err := s.Receive()
			if err != nil {
				return
			}
			if numbered && acknowledged(s, &got, msg) {
				continue
			}
			_ = s.Send(context.Background(), msg)
		}
	}()
	msg := bytes.Repeat([]byte("x"), 200)
	var got Receipts
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Send(b.Context(), bytes.Clone(msg)); err != nil {
			b.Fatal(err)
		}
		for {
			msg, err := c.Receive()
			if err != nil {
				b.Fatal(err)
			}
			if !numbered || !acknowledged(c, &got, msg) {
				break
			}
		}
	}
	c.Abort("done")
	s.Abort("done")
	<-c.Done()
	<-s.Done()
}

// acknowledged takes an acknowledgement, or counts another message and acknowledges those that came.
func acknowledged(c *Conn, got *Receipts, msg []byte) bool {
	if len(msg) < 20 {
		n, _ := strconv.ParseUint(string(msg), 10, 64)
		_ = c.Outbox().Ack(n)
		return true
	}
	if due, now := got.Count(len(msg)); due {
		c.Note(strconv.AppendUint(nil, got.Received, 10), now)
	}
	return false
}

// TestReasonOfAnEndUnderWrites: a fault of the peer is named, whatever is being sent.
func TestReasonOfAnEndUnderWrites(t *testing.T) {
	addr, accepted := serve(t, Config{MaxMessageBytes: 1000})
	for range 100 {
		ws := raw(t, addr, false)
		s := <-accepted
		var busy sync.WaitGroup
		for range 2 {
			busy.Go(func() {
				for s.Send(t.Context(), []byte(strings.Repeat("x", 50))) == nil {
				}
			})
		}
		busy.Go(func() {
			for {
				if _, _, err := ws.ReadMessage(); err != nil {
					return
				}
			}
		})
		_ = ws.WriteMessage(websocket.TextMessage, make([]byte, 2000))
		var end *CloseError
		if _, err := s.Receive(); !errors.As(err, &end) || end.Code != CloseTooBig {
			t.Fatalf("ended with %v", err)
		}
		busy.Wait()
		s.Abort("")
		<-s.Done()
	}
}

// TestTrySendNeverWaits: also where several senders meet and the peer does not read.
func TestTrySendNeverWaits(t *testing.T) {
	addr, accepted := serve(t, Config{WriteStall: time.Minute})
	for range 20 {
		raw(t, addr, false)
		s := <-accepted
		var senders sync.WaitGroup
		for range 8 {
			senders.Go(func() {
				for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); time.Sleep(burst) {
					s.TrySend(make([]byte, inlineBytes-200))
				}
			})
		}
		done := make(chan struct{})
		go func() { senders.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			s.Abort("")
			t.Fatal("a sender waits for the peer")
		}
		s.Abort("")
	}
}

// TestSendHearsOfTheEnd: a message that waited for room and was dropped with the queue was not sent.
func TestSendHearsOfTheEnd(t *testing.T) {
	o, _ := looseOutbox(10)
	o.push(message{make([]byte, 100)}, true, true)
	w, _ := o.push(message{[]byte("2")}, true, true)
	o.Close()
	<-w.settled
	if !w.refused || o.leave(w) {
		t.Error("a waiter was not told of the end")
	}
}

// TestMessagesShareNoMemory: what was received stays as it was, and takes no more memory than it has bytes.
func TestMessagesShareNoMemory(t *testing.T) {
	s, c := pair(t, Config{}, Config{})
	var got [][]byte
	for i, n := range []int{3, 2, 5000, 1 << 20, 4} {
		if err := s.Send(t.Context(), bytes.Repeat([]byte{byte('a' + i)}, n)); err != nil {
			t.Fatal(err)
		}
		m, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if most := n + n/4 + 8; cap(m) > most {
			t.Errorf("a message of %d bytes takes %d", n, cap(m))
		}
		got = append(got, m)
	}
	for i, n := range []int{3, 2, 5000, 1 << 20, 4} {
		if !bytes.Equal(got[i], bytes.Repeat([]byte{byte('a' + i)}, n)) {
			t.Errorf("message %d became %.20q", i, got[i])
		}
	}
}
