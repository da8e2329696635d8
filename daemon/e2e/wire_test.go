package e2e

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client"
)

// wire stands between a client and the service: it passes everything on, reads along what the service says, and can be
// cut.
type wire struct {
	tb      testing.TB
	service string // path of its socket
	listen  net.Listener
	cuts    atomic.Int64
	done    sync.WaitGroup

	mu       sync.Mutex
	pairs    map[*pair]struct{}
	answers  int      // to requests of the client
	offences []string // what the service may not say
}

// pair is one connection through the wire.
type pair struct{ client, server net.Conn }

func (p *pair) close() {
	_ = p.client.Close()
	_ = p.server.Close()
}

// lay lays a wire to the service.
func (s *service) lay() *wire {
	s.tb.Helper()
	l, err := net.Listen("unix", filepath.Join(s.tb.TempDir(), "w"))
	if err != nil {
		s.tb.Fatal(err)
	}
	w := &wire{tb: s.tb, service: strings.TrimPrefix(s.address, "unix:"), listen: l, pairs: map[*pair]struct{}{}}
	w.done.Go(w.accept)
	return w
}

// dial makes a client at the wire's end.
func (w *wire) dial() *client.Client {
	w.tb.Helper()
	c, err := client.Dial(w.tb.Context(), "unix:"+w.listen.Addr().String())
	if err != nil {
		w.tb.Fatal(err)
	}
	return c
}

func (w *wire) accept() {
	for {
		c, err := w.listen.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("unix", w.service)
		if err != nil {
			_ = c.Close()
			continue
		}
		p := &pair{client: c, server: s}
		w.mu.Lock()
		w.pairs[p] = struct{}{}
		w.mu.Unlock()
		w.done.Go(func() { w.pass(p) })
	}
}

// pass passes on in both directions until one ends.
func (w *wire) pass(p *pair) {
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(p.server, p.client)
		p.close()
	})
	if err := w.read(bufio.NewReader(io.TeeReader(p.server, p.client))); err != nil {
		w.offence("%v", err)
	}
	p.close()
	up.Wait()
	w.mu.Lock()
	delete(w.pairs, p)
	w.mu.Unlock()
}

// cut cuts all connections that there are.
func (w *wire) cut() {
	w.cuts.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.pairs {
		p.close()
	}
}

// close ends the wire; the client closed before.
func (w *wire) close() {
	_ = w.listen.Close()
	w.mu.Lock()
	for p := range w.pairs {
		p.close()
	}
	w.mu.Unlock()
	w.done.Wait()
}

func (w *wire) offence(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offences = append(w.offences, fmt.Sprintf(format, args...))
}

// read reads what the service says on one connection: the answer to the handshake, then messages. The error is of what
// is there and is no WebSocket; that a connection ends in the middle is none.
func (w *wire) read(r *bufio.Reader) error {
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return nil
	}
	answered := map[string]bool{}
	for {
		text, err := readMessage(r)
		if err != nil {
			if _, ok := err.(frameError); ok {
				return err
			}
			return nil
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("a message is no JSON: %w", err)
		}
		if m.Method != "" || m.ID == nil {
			continue
		}
		if answered[string(m.ID)] {
			w.offence("request %s was answered twice", m.ID)
		}
		answered[string(m.ID)] = true
		w.mu.Lock()
		w.answers++
		w.mu.Unlock()
	}
}

// frameError is a frame that a server may not send.
type frameError string

func (e frameError) Error() string { return string(e) }

// readMessage reads frames up to the end of a text message (RFC 6455, section 5.2) and drops control frames. Servers do
// not mask, and no extension is in use.
func readMessage(r io.Reader) (text []byte, err error) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, err
		}
		opcode, size := head[0]&0x0f, uint64(head[1])
		if head[0]&0x70 != 0 || size > 127 {
			return nil, frameError(fmt.Sprintf("a frame begins with %x", head))
		}
		if size >= 126 {
			var long [8]byte
			part := long[8-2:]
			if size == 127 {
				part = long[:]
			}
			if _, err := io.ReadFull(r, part); err != nil {
				return nil, err
			}
			size = binary.BigEndian.Uint64(long[:])
		}
		if size > 64<<20 {
			return nil, frameError(fmt.Sprintf("a frame of %d bytes", size))
		}
		payload := make([]byte, size)
		if _, err := io.ReadFull(r, payload); err != nil {
			return nil, err
		}
		if opcode >= 8 {
			continue
		}
		if text = append(text, payload...); head[0]&0x80 != 0 {
			return text, nil
		}
	}
}

// TestWireSeesSecondAnswers: what the soak stands on.
func TestWireSeesSecondAnswers(t *testing.T) {
	frame := func(fin, opcode byte, text string) string {
		head := []byte{fin<<7 | opcode, byte(len(text))}
		if len(text) > 125 {
			head = binary.BigEndian.AppendUint16([]byte{fin<<7 | opcode, 126}, uint16(len(text)))
		}
		return string(head) + text
	}
	hello := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
	long := strings.Repeat(" ", 300)
	for _, c := range []struct {
		name, said string
		answers    int
		offences   int
	}{
		{"one answer in two frames", frame(0, 1, `{"id":1,`) + frame(1, 9, "ping") + frame(1, 0, `"result":2}`), 1, 0},
		{"answers, a call and a notification", frame(1, 1, `{"id":1}`) + frame(1, 1, `{"id":1,"method":"tool.call"}`) + frame(1, 1, `{"method":"x"}`) + frame(1, 1, `{"id":2}`+long), 2, 0},
		{"a second answer", frame(1, 1, `{"id":1}`) + frame(1, 1, `{"id":2}`) + frame(1, 1, `{"id":1}`), 3, 1},
		{"no JSON", frame(1, 1, `{"id":`), 0, 1},
		{"compressed", frame(1, 0x41, `{"id":1}`), 0, 1},
		{"cut", frame(1, 1, `{"id":1}`)[:5], 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &wire{}
			if err := w.read(bufio.NewReader(strings.NewReader(hello + c.said))); err != nil {
				w.offence("%v", err)
			}
			if w.answers != c.answers || len(w.offences) != c.offences {
				t.Errorf("%d answers, offences %q", w.answers, w.offences)
			}
		})
	}
}

// between is a random time.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}
