package worker

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var samples = []Message{
	Execute{
		ID: 7, Code: "return 1", Name: "main.js", Form: "auto", Language: "javascript", Network: "none",
		Input:     []byte(`{"a":1}`),
		Providers: []Provider{{Name: "tools", All: true}, {Name: "db", Paths: [][]string{{"users", "get"}, {"x"}}}},
		Modules:   []Module{{Specifier: "lib", Type: "bytes", Source: []byte{0, 255}}},
		Limits: Limits{
			CPU: time.Second, Wall: 2 * time.Second, Total: time.Minute, HeapBytes: 64 << 20, BufferBytes: 1,
			SlackBytes: 8, StackBytes: 9, ResultBytes: 2, MessageBytes: 6, ValueDepth: 10, ValueParts: 11,
			LogBytes: 3, LogLines: 4, ToolCalls: 5, CallsInFlight: 12, Fetches: 7, Timers: 13,
		},
	},
	Execute{ID: 1},
	ToolResult{ID: 7, Call: 1, OK: true, Value: []byte(`"é"`)},
	ToolResult{ID: 7, Call: 2, Value: []byte(`{"message":"no"}`)},
	Cancel{ID: 7, Reason: "caller left"},
	Invoke{ID: 8, Handle: 3, Method: "next", Args: []byte(`[1]`), Limits: Limits{CPU: time.Second, Timers: 13}},
	Release{Handles: []uint64{1, 1 << 40}},
	Release{},
	Hello{Version: Version, PID: 42, Engine: "13.6", Layers: []string{"seccomp", "no-dump"}, Missing: []string{"landlock: function not implemented"}},
	Ready{Restore: 3 * time.Millisecond},
	Heartbeat{ID: 7, RSSBytes: 1 << 30, HeapBytes: 1 << 20, CPU: time.Second, Wall: time.Hour},
	ToolCall{ID: 7, Call: 1, Provider: "db", Path: []string{"users", "get"}, Args: []byte(`[1]`)},
	Fetch{ID: 7, Call: 2, Fetch: 1, Request: []byte(`{}`)},
	FetchRead{ID: 7, Call: 3, Fetch: 1},
	FetchCancel{ID: 7, Fetch: 1},
	Log{ID: 7, Level: "warn", Time: time.Millisecond, Text: "wärn\x00ing", SkippedLines: 5, SkippedBytes: 6},
	Result{ID: 7, Value: []byte(`1`), CPU: 1, Wall: 2, PeakHeapBytes: 3, ToolCalls: 4, Reached: []string{"timers"}},
	Result{ID: 7, Error: []byte(`{"type":"exception","message":""}`)},
	Result{ID: 7, Value: []byte{}, Retained: true, Handles: 2},
	LastWord{ID: 7, Type: "memory_limit", Detail: "heap"},
}

// body is m as Decode wants it.
func body(m Message) []byte { return Append(nil, m)[headerBytes:] }

func TestRoundTrip(t *testing.T) {
	for _, m := range samples {
		frame := Append([]byte("before"), m)
		if got := binary.LittleEndian.Uint32(frame[6:]); int(got) != len(frame)-6-headerBytes {
			t.Errorf("%T: length %d in a frame of %d bytes", m, got, len(frame))
		}
		got, err := Decode(m.kind().sender(), frame[6+headerBytes:])
		if err != nil || !equal(got, m) {
			t.Errorf("%T: got %+v, %v, want %+v", m, got, err, m)
		}
	}
}

// equal compares messages; bytes that cannot be nil are equal to empty ones when they are.
func equal(a, b Message) bool {
	return reflect.DeepEqual(normal(a), normal(b))
}

func normal(m Message) Message {
	empty := func(p *[]byte) {
		if len(*p) == 0 {
			*p = nil
		}
	}
	switch m := m.(type) {
	case ToolResult:
		empty(&m.Value)
		return m
	case ToolCall:
		empty(&m.Args)
		return m
	case Fetch:
		empty(&m.Request)
		return m
	case Execute:
		m.Modules = append([]Module(nil), m.Modules...)
		for i := range m.Modules {
			empty(&m.Modules[i].Source)
		}
		return m
	}
	return m
}

func TestAppendClampsNegative(t *testing.T) {
	got, err := Decode(Worker, body(Ready{Restore: -1}))
	if err != nil || got != (Ready{}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAppendRefusesPointer(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a pointer was sent")
		}
	}()
	Append(nil, &Ready{})
}

func TestDecodeRefuses(t *testing.T) {
	with := func(m Message, more ...byte) []byte { return append(body(m), more...) }
	cases := []struct {
		name string
		from Side
		body []byte
		want string
	}{
		{"nothing", Worker, nil, "no kind"},
		{"unknown kind of the worker", Worker, []byte{0xff}, "unknown kind 0xff"},
		{"unknown kind of the parent", Parent, []byte{0}, "unknown kind 0x00"},
		{"parent's frame from the worker", Worker, body(Cancel{ID: 1}), "does not come from the worker"},
		{"worker's frame from the parent", Parent, body(Ready{}), "does not come from the parent"},
		{"trailing byte", Worker, with(Ready{}, 0), "after the last field"},
		{"cut field", Worker, body(Log{ID: 1, Level: "log", Text: "abc"})[:8], "longer than the frame"},
		{"cut number", Worker, []byte{byte(kindReady), 0x80}, "cut off"},
		{"no fields", Worker, []byte{byte(kindResult)}, "cut off"},
		{"long number", Worker, []byte{byte(kindReady), 0x80, 0}, "shortest form"},
		{"number over 64 bits", Worker, []byte{byte(kindReady), 255, 255, 255, 255, 255, 255, 255, 255, 255, 2}, "over 64 bits"},
		{"negative duration", Worker, []byte{byte(kindReady), 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, "out of range"},
		{"number over 32 bits", Worker, []byte{byte(kindHello), 255, 255, 255, 255, 16}, "out of range"},
		{"boolean 2", Parent, []byte{byte(kindToolResult), 1, 1, 2, 0}, "out of range"},
		{"text not UTF-8", Worker, []byte{byte(kindLastWord), 1, 1, 0xc0, 0}, "not UTF-8"},
		{"surrogate in text", Worker, []byte{byte(kindLastWord), 1, 3, 0xed, 0xa0, 0x80, 0}, "not UTF-8"},
		{"length near 2^64", Worker, []byte{byte(kindLastWord), 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, "longer than the frame"},
		{"optional of length 2^64-1", Worker, []byte{byte(kindResult), 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, "longer than the frame"},
		{"list longer than the frame", Worker, []byte{byte(kindToolCall), 1, 1, 0, 5, 0, 0, 0}, "list is too long"},
		{"list length near 2^64", Worker, []byte{byte(kindToolCall), 1, 1, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, "list is too long"},
		{"layers over the bound", Worker, body(Hello{Layers: make([]string, maxLayers+1)}), "list is too long"},
		{"path over the bound", Worker, body(ToolCall{Path: make([]string, maxPath+1)}), "list is too long"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, err := Decode(c.from, c.body)
			if _, ok := err.(*FrameError); !ok || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v, want error with %q", m, err, c.want)
			}
		})
	}
}

func TestDecodedFieldsDoNotOverlap(t *testing.T) {
	m, err := Decode(Worker, body(Result{ID: 1, Value: []byte("1"), Error: []byte("2")}))
	if err != nil {
		t.Fatal(err)
	}
	r := m.(Result)
	_ = append(r.Value, "overwritten"...)
	if string(r.Error) != "2" {
		t.Errorf("appending to one field changed the next to %q", r.Error)
	}
}

// TestRoundTripProperty: whatever can be said arrives as it was said.
func TestRoundTripProperty(t *testing.T) {
	text := rapid.StringOf(rapid.Rune())
	data := rapid.SliceOfN(rapid.Byte(), 0, 40)
	num := rapid.Uint64()
	dur := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Min(0).Draw(t, "ns")) })
	optional := rapid.OneOf(rapid.Just([]byte(nil)), data)
	list := func(t *rapid.T, name string) []string {
		l := rapid.SliceOfN(text, 0, 5).Draw(t, name)
		if len(l) == 0 {
			return nil
		}
		return l
	}
	rapid.Check(t, func(t *rapid.T) {
		messages := []Message{
			Execute{
				ID: num.Draw(t, "id"), Code: text.Draw(t, "code"), Input: optional.Draw(t, "input"),
				Retain:    text.Draw(t, "retain"),
				Providers: []Provider{{Name: text.Draw(t, "name"), Paths: [][]string{list(t, "path")}}},
				Modules:   []Module{{Specifier: text.Draw(t, "specifier"), Source: data.Draw(t, "source")}},
				Limits:    Limits{CPU: dur.Draw(t, "cpu"), MessageBytes: rapid.Int64Min(0).Draw(t, "bytes")},
			},
			ToolResult{ID: num.Draw(t, "id"), Call: num.Draw(t, "call"), OK: rapid.Bool().Draw(t, "ok"), Value: data.Draw(t, "value")},
			Hello{Version: rapid.Uint32().Draw(t, "version"), PID: rapid.Uint32().Draw(t, "pid"), Layers: list(t, "layers")},
			Heartbeat{ID: num.Draw(t, "id"), CPU: dur.Draw(t, "cpu"), Wall: dur.Draw(t, "wall")},
			ToolCall{ID: num.Draw(t, "id"), Provider: text.Draw(t, "provider"), Path: list(t, "path"), Args: data.Draw(t, "args")},
			Result{ID: num.Draw(t, "id"), Value: optional.Draw(t, "value"), Error: optional.Draw(t, "error"), ToolCalls: num.Draw(t, "calls"), Retained: rapid.Bool().Draw(t, "retained"), Handles: num.Draw(t, "handles")},
			Invoke{ID: num.Draw(t, "id"), Handle: num.Draw(t, "handle"), Method: text.Draw(t, "method"), Args: data.Draw(t, "args"), Limits: Limits{Wall: dur.Draw(t, "wall")}},
		}
		for _, m := range messages {
			got, err := Decode(m.kind().sender(), body(m))
			if err != nil || !equal(got, m) {
				t.Fatalf("got %+v, %v, want %+v", got, err, m)
			}
		}
	})
}

// fuzzSide checks that Decode never panics, and that what it accepts has one encoding only: the one it came in.
func fuzzSide(f *testing.F, from Side) {
	for _, m := range samples {
		if m.kind().sender() == from {
			f.Add(body(m))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		original := append([]byte(nil), b...)
		m, err := Decode(from, b)
		if err != nil {
			if _, ok := err.(*FrameError); !ok {
				t.Fatalf("error is a %T", err)
			}
			return
		}
		if again := body(m); string(again) != string(original) {
			t.Fatalf("%x decodes to %+v, which encodes to %x", original, m, again)
		}
	})
}

func FuzzDecodeFromWorker(f *testing.F) { fuzzSide(f, Worker) }
func FuzzDecodeFromParent(f *testing.F) { fuzzSide(f, Parent) }

var call = ToolCall{ID: 7, Call: 12, Provider: "tools", Path: []string{"users", "get"}, Args: []byte(`[{"id":12,"name":"someone"}]`)}

func BenchmarkAppendToolCall(b *testing.B) {
	b.ReportAllocs()
	var m Message = call
	var buf []byte
	for b.Loop() {
		buf = Append(buf[:0], m)
	}
}

func BenchmarkDecodeToolCall(b *testing.B) {
	b.ReportAllocs()
	frame := body(call)
	for b.Loop() {
		if _, err := Decode(Worker, frame); err != nil {
			b.Fatal(err)
		}
	}
}
