package conformance

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/protocol"
)

// A transcript is a file of lines, each a JSON object, that are played in order:
//
//	{"send": message}          sends it, with "$name" replaced by what was captured
//	{"sendText": "text"}       sends a text frame as it is
//	{"sendBytes": "base64"}    sends a text frame of any bytes
//	{"sendBinary": "text"}     sends a binary frame
//	{"close": 1000}            sends a close frame
//	{"connect": true}          makes another connection and goes on with it
//	{"reconnect": true}        breaks the connection before
//	{"expect": message}        takes the next message, which must have at least these members
//	{"expectAll": [message…]}  takes as many messages as there are, in any order
//	{"await": message}         passes over messages until one matches
//	{"expectClose": 1003}      takes the close frame
//	{"ignore": ["method"]}     passes over these notifications from now on
//	{"": "text"}               says what follows
//
// In an expected message the string "$any" stands for any value, "$absent" for no member, "$text" for a string that is
// not empty, "$number" for a number, and "$=name" for any value, which it captures.

//go:embed testdata/*.jsonl
var transcripts embed.FS

// line is one line of a transcript: one of the fields is set.
type line struct {
	Comment     string            `json:""`
	Send        json.RawMessage   `json:"send"`
	SendText    *string           `json:"sendText"`
	SendBytes   []byte            `json:"sendBytes"`
	SendBinary  *string           `json:"sendBinary"`
	Close       int               `json:"close"`
	Connect     bool              `json:"connect"`
	Reconnect   bool              `json:"reconnect"`
	Expect      json.RawMessage   `json:"expect"`
	ExpectAll   []json.RawMessage `json:"expectAll"`
	Await       json.RawMessage   `json:"await"`
	ExpectClose int               `json:"expectClose"`
	Ignore      []string          `json:"ignore"`
}

// Replay plays every transcript to the service that dial connects to, each on connections of its own. The service has
// default limits and keeps lost sessions.
func Replay(t *testing.T, dial func(ctx context.Context) (net.Conn, error)) {
	files, err := transcripts.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(f.Name(), ".jsonl"), func(t *testing.T) {
			text, err := transcripts.ReadFile(path.Join("testdata", f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			again := func() *websocket.Conn { return connect(t, dial) }
			p := player{ws: again(), again: again, captured: map[string]any{}, ignored: map[string]bool{}}
			p.play(t, f.Name(), text)
		})
	}
}

func connect(t *testing.T, dial func(ctx context.Context) (net.Conn, error)) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{
		Subprotocols:   []string{protocol.Subprotocol},
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}
	ws, resp, err := d.DialContext(t.Context(), "ws://localhost/v1/session", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = ws.Close() })
	return ws
}

type player struct {
	ws       *websocket.Conn
	again    func() *websocket.Conn
	captured map[string]any
	ignored  map[string]bool
}

func (p *player) play(t *testing.T, name string, text []byte) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		if err := p.line(lines.Bytes()); err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
	}
}

func (p *player) line(text []byte) error {
	var l line
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&l); err != nil {
		return err
	}
	switch {
	case l.Send != nil:
		return p.write(websocket.TextMessage, p.fill(l.Send))
	case l.SendText != nil:
		return p.write(websocket.TextMessage, []byte(*l.SendText))
	case l.SendBytes != nil:
		return p.write(websocket.TextMessage, l.SendBytes)
	case l.SendBinary != nil:
		return p.write(websocket.BinaryMessage, []byte(*l.SendBinary))
	case l.Close != 0:
		return p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(l.Close, ""), time.Now().Add(deadline))
	case l.Connect, l.Reconnect:
		if l.Reconnect {
			_ = p.ws.Close() // without a close frame
		}
		p.ws = p.again()
		return nil
	case l.Expect != nil:
		return p.expect(l.Expect)
	case l.ExpectAll != nil:
		return p.expectAll(l.ExpectAll)
	case l.Await != nil:
		return p.await(l.Await)
	case l.ExpectClose != 0:
		return p.expectClose(l.ExpectClose)
	case l.Ignore != nil:
		for _, m := range l.Ignore {
			p.ignored[m] = true
		}
		return nil
	case bytes.HasPrefix(text, []byte(`{"":`)):
		return nil
	}
	return fmt.Errorf("nothing to do in %s", text)
}

func (p *player) write(kind int, text []byte) error { return p.ws.WriteMessage(kind, text) }

// fill puts captured values in place of their names.
func (p *player) fill(message json.RawMessage) []byte {
	for name, v := range p.captured {
		text, _ := json.Marshal(v)
		message = bytes.ReplaceAll(message, []byte(`"$`+name+`"`), text)
	}
	return message
}

// next takes the next message that is not to be ignored.
func (p *player) next() (any, []byte, error) {
	_ = p.ws.SetReadDeadline(time.Now().Add(deadline))
	for {
		_, text, err := p.ws.ReadMessage()
		if err != nil {
			return nil, nil, fmt.Errorf("no message came: %w", err)
		}
		var m any
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, nil, fmt.Errorf("%s is no JSON: %w", text, err)
		}
		object, _ := m.(map[string]any)
		if method, ok := object["method"].(string); !ok || !p.ignored[method] {
			return m, text, nil
		}
	}
}

func (p *player) expect(message json.RawMessage) error {
	return p.expectAll([]json.RawMessage{message})
}

// expectAll takes as many messages as there are patterns. Each must match one that is left.
func (p *player) expectAll(messages []json.RawMessage) error {
	left, err := p.patterns(messages)
	if err != nil {
		return err
	}
	for len(left) > 0 {
		got, text, err := p.next()
		if err != nil {
			return err
		}
		var fault error
		at := slices.IndexFunc(left, func(want any) bool {
			err := p.match(want, got, "")
			fault = cmp.Or(fault, err)
			return err == nil
		})
		if at < 0 {
			return fmt.Errorf("%w\n got: %s\nwant: %s", fault, text, messages)
		}
		left = slices.Delete(left, at, at+1)
	}
	return nil
}

func (p *player) await(message json.RawMessage) error {
	want, err := p.patterns([]json.RawMessage{message})
	if err != nil {
		return err
	}
	for {
		got, _, err := p.next()
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", message, err)
		}
		if p.match(want[0], got, "") == nil {
			return nil
		}
	}
}

func (p *player) patterns(messages []json.RawMessage) ([]any, error) {
	list := make([]any, len(messages))
	for i, m := range messages {
		if err := json.Unmarshal(p.fill(m), &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// match compares got with the pattern want.
func (p *player) match(want, got any, at string) error {
	switch want := want.(type) {
	case string:
		return p.matchText(want, got, at)
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is no object", at)
		}
		for key, w := range want {
			g, there := object[key]
			if (w == "$absent") == there {
				return fmt.Errorf("%s.%s: there is %v", at, key, there)
			}
			if there {
				if err := p.match(w, g, at+"."+key); err != nil {
					return err
				}
			}
		}
		return nil
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Errorf("%s is no array of %d items", at, len(want))
		}
		for i, w := range want {
			if err := p.match(w, list[i], fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	}
	return same(want, got, at)
}

func (p *player) matchText(want string, got any, at string) error {
	text, isText := got.(string)
	_, isNumber := got.(float64)
	name, capture := strings.CutPrefix(want, "$=")
	switch {
	case capture:
		p.captured[name] = got
		return nil
	case want == "$any", want == "$text" && isText && text != "", want == "$number" && isNumber:
		return nil
	}
	return same(want, got, at)
}

func same(want, got any, at string) error {
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("%s is %v, want %v", at, got, want)
	}
	return nil
}

func (p *player) expectClose(code int) error {
	_ = p.ws.SetReadDeadline(time.Now().Add(deadline))
	for {
		_, text, err := p.ws.ReadMessage()
		var end *websocket.CloseError
		switch {
		case err == nil:
			var m struct {
				Method string `json:"method"`
			}
			if json.Unmarshal(text, &m) != nil || !p.ignored[m.Method] {
				return fmt.Errorf("got %s, want close status %d", text, code)
			}
		case errors.As(err, &end) && end.Code == code:
			return nil
		default:
			return fmt.Errorf("ended with %w, want close status %d", err, code)
		}
	}
}
