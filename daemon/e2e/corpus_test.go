package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// row is a program with the answer of the reference executor (Cloudflare's DynamicWorkerExecutor on workerd).
type row struct {
	ID     string `json:"id"`
	Group  string `json:"group"`
	Code   string `json:"code"`
	Expect struct {
		Outcome string `json:"outcome"`
		Result  any    `json:"result"`
		Error   any    `json:"error"`
		Calls   any    `json:"calls"`
	} `json:"expect"`
}

// corpus has the rows, of other groups too; its first line says how to read it.
const corpus = "../../packaging/npm/test/differential/corpus.jsonl"

// TestModelAndToolsRowsOfTheReference runs each row of these groups as a function program and wants the reference's value
// and calls.
func TestModelAndToolsRowsOfTheReference(t *testing.T) {
	c := start(t, testbin.Worker(t)).dial()
	defer c.Close()
	f, err := os.Open(corpus)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Group != "model" && r.Group != "tools" {
			continue
		}
		n++
		t.Run(r.ID, func(t *testing.T) { judge(t, c, r) })
	}
	if n != 41 {
		t.Fatalf("%d rows, want 41", n)
	}
}

func judge(t *testing.T, c executor.Executor, r row) {
	host := newStandardHost()
	req := executor.Request{Execute: protocol.Execute{Code: asFunction(r.Code), Form: protocol.FormFunction}}
	req.Provide(host.providers()...)
	call := req.Call
	req.Call = func(ctx context.Context, c executor.ToolCall) (protocol.Value, error) {
		return call(context.WithValue(ctx, callNumber{}, c.Call), c)
	}
	o := run(t, c, req)
	switch r.Expect.Outcome {
	case "ok":
		if o.Error != nil || !reflect.DeepEqual(canon(o.Value), r.Expect.Result) {
			t.Errorf("got %s, %v; want %v", o.Value, o.Error, r.Expect.Result)
		}
	case "error":
		if o.Error == nil || o.Error.Type != protocol.Exception || o.Error.Message != r.Expect.Error {
			t.Errorf("got %s, %v; want the exception %q", o.Value, o.Error, r.Expect.Error)
		}
	default:
		t.Fatalf("the row has the outcome %q", r.Expect.Outcome)
	}
	if r.ID == "model-forgot-await" {
		return // its call races with its end
	}
	// A call that was not waited for has begun with the outcome at the latest; the host may be about to note it.
	if !within(2*time.Second, func() bool { return reflect.DeepEqual(host.seen(), r.Expect.Calls) }) {
		t.Errorf("calls %v\nwant %v", host.seen(), r.Expect.Calls)
	}
}

// asFunction makes a function of the rows that are statements, as the dialect does.
func asFunction(code string) string {
	if strings.HasPrefix(code, "async (") {
		return code
	}
	return "async () => {\n" + code + "\n}"
}

// canon gives a value as the corpus writes it.
func canon(v protocol.Value) any {
	if string(v) == `{"@undefined":true}` {
		return map[string]any{"$t": "undefined"}
	}
	var x any
	d := json.NewDecoder(bytes.NewReader(v))
	if err := d.Decode(&x); err != nil {
		return fmt.Sprint("not JSON: ", err)
	}
	if s, ok := x.(string); ok && len(s) > 1024 {
		return digest(s)
	}
	return x
}

// digest is the corpus's short form of a long string.
func digest(s string) any {
	units := utf16.Encode([]rune(s))
	h := uint32(0x811c9dc5)
	for _, u := range units {
		h = (h ^ uint32(u&0xff)) * 0x01000193
		h = (h ^ uint32(u>>8)) * 0x01000193
	}
	return map[string]any{"$t": "str", "len": float64(len(units)), "fnv": fmt.Sprintf("%08x", h), "head": string(utf16.Decode(units[:48]))}
}

// callNumber is the key of a call's number in the context of its tool.
type callNumber struct{}

// standardHost is the corpus's standard set of providers, as far as its model and tools groups use it.
type standardHost struct {
	mu    sync.Mutex
	calls map[uint64]any // by number: calls made at once run in any order
	count int
	tries map[string]int
}

func newStandardHost() *standardHost {
	return &standardHost{calls: map[uint64]any{}, tries: map[string]int{}}
}

func (h *standardHost) seen() any {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []any{}
	for _, number := range slices.Sorted(maps.Keys(h.calls)) {
		list = append(list, h.calls[number])
	}
	return list
}

var userNames = []string{"ada", "grace", "linus", "margaret", "ken", "barbara", "dennis", "radia"}

// person has its members in the order in which the reference's host gives them.
type person struct {
	ID     int    `json:"id"`
	Name   string `json:"name"`
	Score  int    `json:"score"`
	Active bool   `json:"active"`
}

func user(id int) person {
	return person{id, userNames[id%8], id * 37 % 101, id%3 != 0}
}

type fields = map[string]any

func number(f fields, name string, otherwise float64) float64 {
	if v, ok := f[name].(float64); ok {
		return v
	}
	return otherwise
}

// tool is a tool with its name at the host.
type tool struct {
	raw string
	f   func(ctx context.Context, args []any) (any, error)
}

func first(args []any) fields {
	if len(args) == 0 {
		return nil
	}
	f, _ := args[0].(fields)
	return f
}

func (h *standardHost) providers() []executor.Provider {
	return []executor.Provider{h.provider("codemode", h.codemode()), h.provider("math", mathTools())}
}

func (h *standardHost) codemode() map[string]tool {
	return map[string]tool{
		"echo": {"echo", func(_ context.Context, a []any) (any, error) { return a[0], nil }},
		"args": {"args", func(_ context.Context, a []any) (any, error) { return fields{"count": len(a), "args": a}, nil }},
		"add": {"add", func(_ context.Context, a []any) (any, error) {
			return number(first(a), "a", 0) + number(first(a), "b", 0), nil
		}},
		"upper": {"upper", func(_ context.Context, a []any) (any, error) {
			return strings.ToUpper(fmt.Sprint(first(a)["text"])), nil
		}},
		"slow":  {"slow", slow},
		"never": {"never", func(ctx context.Context, _ []any) (any, error) { <-ctx.Done(); return nil, ctx.Err() }},
		"fail":  {"fail", func(_ context.Context, a []any) (any, error) { return nil, fail(first(a)) }},
		"list": {"list", func(_ context.Context, a []any) (any, error) {
			return users(0, int(number(first(a), "n", 5))), nil
		}},
		"page":     {"page", func(_ context.Context, a []any) (any, error) { return page(first(a)), nil }},
		"get_user": {"get-user", func(_ context.Context, a []any) (any, error) { return getUser(first(a)) }},
		"counter":  {"counter", func(context.Context, []any) (any, error) { h.count++; return h.count, nil }},
		"flaky":    {"flaky", func(_ context.Context, a []any) (any, error) { return h.flaky(first(a)) }},
	}
}

func slow(ctx context.Context, a []any) (any, error) {
	select {
	case <-time.After(time.Duration(number(first(a), "ms", 0)) * time.Millisecond):
	case <-ctx.Done():
	}
	if v, ok := first(a)["value"]; ok {
		return v, nil
	}
	return "slow", nil
}

func users(from, n int) []any {
	list := []any{}
	for i := range n {
		list = append(list, user(from+i+1))
	}
	return list
}

func page(f fields) any {
	cursor, size := int(number(f, "cursor", 0)), int(number(f, "size", 3))
	p := fields{"items": users(cursor, max(0, min(size, 8-cursor))), "next": nil}
	if cursor+size < 8 {
		p["next"] = cursor + size
	}
	return p
}

func getUser(f fields) (any, error) {
	id := int(number(f, "id", 0))
	if id < 1 || id > 8 {
		return nil, &protocol.ThrownError{Name: "NotFoundError", Message: fmt.Sprintf("no user %d", id), Code: "E_NOT_FOUND"}
	}
	return user(id), nil
}

func (h *standardHost) flaky(f fields) (any, error) {
	h.tries["k"]++
	if n := h.tries["k"]; float64(n) <= number(f, "failures", 1) {
		return nil, fmt.Errorf("flaky: attempt %d failed", n)
	}
	return fields{"attempt": h.tries["k"]}, nil
}

func fail(f fields) error {
	message := "tool failed"
	if m, ok := f["message"].(string); ok {
		message = m
	}
	text, _ := protocol.Marshal(message)
	switch f["kind"] {
	case "type":
		return &protocol.ThrownError{Name: "TypeError", Message: message}
	case "string":
		return &protocol.ThrownError{Thrown: text}
	case "object":
		return &protocol.ThrownError{Thrown: protocol.Value(`{"code":1,"message":` + string(text) + `}`)}
	}
	return &protocol.ThrownError{Message: message}
}

func mathTools() map[string]tool {
	return map[string]tool{
		"multiply": {"multiply", func(_ context.Context, a []any) (any, error) { return a[0].(float64) * a[1].(float64), nil }},
		"pow": {"pow", func(_ context.Context, a []any) (any, error) {
			return math.Pow(number(first(a), "base", 0), number(first(a), "exp", 0)), nil
		}},
		"stats": {"stats", func(_ context.Context, a []any) (any, error) {
			low, high, sum := math.Inf(1), math.Inf(-1), 0.0
			for _, x := range a[0].([]any) {
				low, high, sum = min(low, x.(float64)), max(high, x.(float64)), sum+x.(float64)
			}
			return json.RawMessage(fmt.Sprintf(`{"n":%d,"min":%v,"max":%v,"sum":%v}`, len(a[0].([]any)), low, high, sum)), nil
		}},
	}
}

// provider announces every name, as the reference does, and records each call that reaches the host.
func (h *standardHost) provider(name string, tools map[string]tool) executor.Provider {
	return executor.Provider{Name: name, Any: func(ctx context.Context, path []string, args []protocol.Value) (protocol.Value, error) {
		t, ok := tools[path[0]]
		if !ok {
			return nil, fmt.Errorf("Tool %q not found", path[0])
		}
		plain := make([]any, len(args))
		recorded := make([]any, len(args))
		for i, a := range args {
			if err := protocol.Unmarshal(a, &plain[i]); err != nil {
				return nil, err
			}
			recorded[i] = canon(a)
		}
		h.mu.Lock()
		h.calls[ctx.Value(callNumber{}).(uint64)] = []any{name + "." + t.raw, recorded}
		h.mu.Unlock()
		v, err := t.f(ctx, plain)
		if err != nil {
			return nil, err
		}
		return protocol.Marshal(v)
	}}
}
