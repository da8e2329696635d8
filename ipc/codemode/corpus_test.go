package codemode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/fetch"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }

// service is a running executord, and a connection to it.
func service(t *testing.T) *client.Client {
	t.Helper()
	address := "unix:" + filepath.Join(t.TempDir(), "s")
	said := &strings.Builder{}
	cmd := exec.Command(testbin.Executord(t), "--listen", address, "--worker-binary", testbin.Worker(t), "--workers", "4")
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("executord said:\n%s", said)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		c, err := client.Dial(ctx, address)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond): // another process begins to listen
		}
	}
}

// corpusRow is a program with the reference's answer; the first line of the corpus says how to read it.
type corpusRow struct {
	ID, Group, Level, Code string
	Providers              json.RawMessage
	Timeout                int
	Modules                map[string]string
	Outbound               string
	Settle                 int
	Expect                 corpusAnswer
	Want                   *map[string]json.RawMessage
}

type corpusAnswer struct {
	Outcome                    string
	Result, Error, Logs, Calls json.RawMessage
}

const corpusFile = "../../packaging/npm/test/differential/corpus.jsonl"

// racing are rows whose calls may or may not reach the host before the program ends: it does not wait for them.
var racing = []string{"model-forgot-await"}

// TestTwinAnswersTheCorpus runs every row through the twin and a real service, and wants of each what the reference answers, but
// for those that docs/codemode-deviations.md names: which have to differ.
func TestTwinAnswersTheCorpus(t *testing.T) {
	native := service(t)
	deviates := deviations(t)
	differ := map[string]int{}
	var mu sync.Mutex
	t.Run("rows", func(t *testing.T) {
		for _, row := range rows[corpusRow](t, corpusFile)[1:] {
			t.Run(row.ID, func(t *testing.T) {
				t.Parallel()
				got := answerTo(native, row)
				faults := row.faults(got)
				if slices.Contains(racing, row.ID) {
					faults = slices.DeleteFunc(faults, func(f string) bool { return strings.HasPrefix(f, "calls:") })
				}
				if deviates[row.ID] {
					mu.Lock()
					differ[row.ID] = len(faults)
					mu.Unlock()
					return
				}
				for _, f := range faults {
					t.Errorf("%s\n%s", row.Code, f)
				}
			})
		}
	})
	for id := range deviates {
		if n, ran := differ[id]; !ran || n == 0 {
			t.Errorf("%s is listed as a deviation and does not differ", id)
		}
	}
}

// deviations are the rows that the page names.
func deviations(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/codemode-deviations.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(line, "|\n "), "|")
		if len(cells) != 4 || strings.HasPrefix(line, "| what | the reference") || strings.HasPrefix(line, "| ---") {
			continue
		}
		for id := range strings.SplitSeq(cells[3], ",") {
			found[strings.TrimSpace(id)] = true
		}
	}
	if len(found) < 50 {
		t.Fatalf("the page names %d rows", len(found))
	}
	return found
}

// answerTexts is a result in the form of a row's expect, as texts of plain JSON.
type answerTexts map[string]string

func answerTo(native executor.Executor, row corpusRow) answerTexts {
	var spec struct {
		Set   string
		Name  string
		Names []string
		Text  string
	}
	if json.Unmarshal(row.Providers, &spec) != nil {
		_ = json.Unmarshal(row.Providers, &spec.Set)
	}
	h := &corpusHost{calls: map[uint64]any{}, kept: map[string]any{}, tries: map[string]int{}}
	config := Config{Timeout: 5 * time.Second, Modules: row.Modules}
	if row.Timeout != 0 {
		config.Timeout = time.Duration(row.Timeout) * time.Millisecond
	}
	if row.Outbound == "echo" {
		config.Outbound = fetch.Over(roundTripper(echo))
	}
	o := Options{}
	if spec.Set == "connectors" {
		for _, name := range spec.Names {
			o.Connectors = append(o.Connectors, h.connector(name))
		}
	}
	r := New(native, config).Execute(context.Background(), row.Code, h.providers(spec.Set, spec.Name, spec.Names, spec.Text), o)
	if row.Settle != 0 {
		time.Sleep(time.Duration(row.Settle) * time.Millisecond) // the row says so: what comes late is to come
	}
	got := answerTexts{"outcome": `"ok"`, "calls": textOfGraph(h.seen())}
	if r.Error != "" {
		got["outcome"], got["error"] = `"error"`, textOfGraph(canon(r.Error))
	} else if graph, err := protocol.Decode(r.Value, protocol.ValueBounds); err == nil {
		got["result"] = textOfGraph(canon(graph))
	} else {
		got["result"] = err.Error()
	}
	if r.Logs != nil {
		got["logs"] = textOfGraph(canonLogs(r.Logs))
	}
	return got
}

// faults are what is otherwise than the reference has it.
func (row corpusRow) faults(got answerTexts) (list []string) {
	want := map[string]json.RawMessage{}
	e := row.Expect
	switch {
	case e.Outcome == "hang" || e.Outcome == "crash":
		if row.Want != nil {
			want = *row.Want
		}
	case e.Outcome == "threw":
		want["outcome"], want["calls"] = json.RawMessage(`"error"`), e.Calls
		if strings.Contains(string(e.Error), "SyntaxError") && !strings.Contains(got["error"], "SyntaxError") {
			list = append(list, "error: "+got["error"]+" does not say that it is a syntax error")
		}
	default:
		want = map[string]json.RawMessage{"outcome": json.RawMessage(`"` + e.Outcome + `"`), "result": e.Result, "error": e.Error, "logs": e.Logs, "calls": e.Calls}
	}
	for _, field := range slices.Sorted(maps.Keys(want)) {
		text := ""
		if want[field] != nil {
			text = textOfGraph(plain(want[field]))
		}
		if got[field] != text {
			list = append(list, fmt.Sprintf("%s: got %.300s, want %.300s", field, got[field], text))
		}
	}
	return list
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// echo is what the corpus's outbound handler answers.
func echo(r *http.Request) (*http.Response, error) {
	text := func(status int, kind, body string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Proto: "HTTP/1.1", Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	switch r.URL.Path {
	case "/status/404":
		return text(404, "text/plain;charset=UTF-8", "nope")
	case "/throw":
		return nil, &protocol.ThrownError{Message: "outbound refused"}
	}
	body := []byte{}
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	var header any
	for name, values := range r.Header {
		if strings.EqualFold(name, "x-probe") {
			header = values[0]
		}
	}
	answer := object(pair{Key: "method", Value: r.Method}, pair{Key: "url", Value: r.URL.String()}, pair{Key: "header", Value: header}, pair{Key: "body", Value: string(body)})
	return text(200, "application/json", textOfGraph(answer))
}

// corpusHost has the corpus's providers, which packaging/npm/test/differential/providers.mjs describes, for one execution.
type corpusHost struct {
	mu    sync.Mutex
	calls map[uint64]any
	count int
	kept  map[string]any
	order []string
	tries map[string]int
}

func (h *corpusHost) seen() any {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := list()
	for _, number := range slices.Sorted(maps.Keys(h.calls)) {
		all.Items = append(all.Items, h.calls[number])
	}
	if n := len(all.Items); n > 120 {
		return tagged("calls", pair{Key: "n", Value: float64(n)}, pair{Key: "first", Value: list(all.Items[:2]...)}, pair{Key: "last", Value: list(all.Items[n-2:]...)})
	}
	return all
}

func (h *corpusHost) called(ctx context.Context, name string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[CallNumber(ctx)] = list(name, canon(list(args...)))
}

// fn is a function of the host on exact values.
type fn = func(ctx context.Context, args []any) (any, error)

type named struct {
	name string
	f    fn
}

func (h *corpusHost) provider(name string, fns ...named) Provider {
	p := Provider{Name: name}
	for _, f := range fns {
		p.Tools = append(p.Tools, Tool{f.name, func(ctx context.Context, values []protocol.Value) (protocol.Value, error) {
			args := make([]any, len(values))
			for i, v := range values {
				var err error
				if args[i], err = protocol.Decode(v, protocol.ValueBounds); err != nil {
					return nil, err
				}
			}
			h.called(ctx, name+"."+f.name, args...)
			answer, err := f.f(ctx, args)
			if err != nil {
				return nil, err
			}
			return protocol.Encode(answer)
		}})
	}
	return p
}

func (h *corpusHost) providers(set, name string, names []string, text string) []Provider {
	switch set {
	case "none":
		return nil
	case "record":
		std := h.codemode()
		return []Provider{h.provider("codemode", std[slices.IndexFunc(std, func(n named) bool { return n.name == "echo" })], std[slices.IndexFunc(std, func(n named) bool { return n.name == "add" })])}
	case "named":
		return []Provider{h.provider(name, named{"ping", func(context.Context, []any) (any, error) { return "pong", nil }})}
	case "two":
		var two []Provider
		for i, n := range names {
			two = append(two, h.provider(n, named{"who", func(context.Context, []any) (any, error) { return fmt.Sprintf("%s#%d", n, i), nil }}))
		}
		return two
	case "fns":
		var fns []named
		for _, n := range names {
			fns = append(fns, named{n, func(_ context.Context, a []any) (any, error) {
				return object(pair{Key: "raw", Value: n}, pair{Key: "args", Value: list(a...)}), nil
			}})
		}
		return []Provider{h.provider("codemode", fns...)}
	}
	std := []Provider{h.provider("codemode", h.codemode()...), h.provider("math", h.math()...), h.provider("store", h.store()...)}
	switch set {
	case "prelude":
		std[0].Prelude = "codemode.twice = async (fn) => { const a = await fn(); const b = await codemode.echo(await fn()); return [a, b]; };\n" +
			`codemode.version = "prelude-1";`
	case "preludeText":
		std[0].Prelude = text
	}
	return std
}

// prop is a member of the first argument, undefined where there is none.
func prop(args []any, key string) any {
	if len(args) == 0 {
		return protocol.Undefined{}
	}
	o, _ := args[0].(*protocol.Object)
	if o == nil {
		return protocol.Undefined{}
	}
	v, _ := member(o, key)
	return v
}

func numberProp(args []any, key string, otherwise float64) float64 {
	if f, ok := prop(args, key).(float64); ok {
		return f
	}
	return otherwise
}

func at(args []any, i int) any {
	if i < len(args) {
		return args[i]
	}
	return protocol.Undefined{}
}

func user(id int) any {
	names := []string{"ada", "grace", "linus", "margaret", "ken", "barbara", "dennis", "radia"}
	return object(pair{Key: "id", Value: float64(id)}, pair{Key: "name", Value: names[id%8]}, pair{Key: "score", Value: float64(id * 37 % 101)}, pair{Key: "active", Value: id%3 != 0})
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func (h *corpusHost) codemode() []named {
	constant := func(v any) fn { return func(context.Context, []any) (any, error) { return v, nil } }
	return []named{
		{"echo", func(_ context.Context, a []any) (any, error) { return at(a, 0), nil }},
		{"args", func(_ context.Context, a []any) (any, error) {
			return object(pair{Key: "count", Value: float64(len(a))}, pair{Key: "args", Value: list(a...)}), nil
		}},
		{"inspect", func(_ context.Context, a []any) (any, error) {
			forms := list()
			for _, arg := range a {
				forms.Items = append(forms.Items, canon(arg))
			}
			return forms, nil
		}},
		{"add", add},
		{"sum", func(_ context.Context, a []any) (any, error) {
			sum := 0.0
			for _, n := range a {
				sum += n.(float64)
			}
			return sum, nil
		}},
		{"upper", func(_ context.Context, a []any) (any, error) { return strings.ToUpper(textOf(prop(a, "text"))), nil }},
		{"nothing", constant(protocol.Undefined{})},
		{"nil", constant(nil)},
		{"no", constant(false)},
		{"fail", func(_ context.Context, a []any) (any, error) { return nil, corpusFailure(a) }},
		{"kinds", func(_ context.Context, a []any) (any, error) { return kinds(textOf(prop(a, "kind"))), nil }},
		{"bytes", func(_ context.Context, a []any) (any, error) {
			return &protocol.Buffer{Kind: "Uint8Array", Data: pattern(int(numberProp(a, "n", 0)))}, nil
		}},
		{"buffer", func(_ context.Context, a []any) (any, error) {
			return &protocol.Buffer{Kind: "ArrayBuffer", Data: pattern(int(numberProp(a, "n", 0)))}, nil
		}},
		{"view", func(_ context.Context, a []any) (any, error) {
			return &protocol.Buffer{Kind: "Uint16Array", Data: pattern(int(numberProp(a, "n", 0)) &^ 1)}, nil
		}},
		{"slice", func(_ context.Context, a []any) (any, error) {
			return &protocol.Buffer{Kind: "Uint8Array", Data: pattern(256)[int(numberProp(a, "from", 0)):int(numberProp(a, "to", 256))]}, nil
		}},
		{"big", func(_ context.Context, a []any) (any, error) {
			return strings.Repeat("x", int(numberProp(a, "chars", 0))), nil
		}},
		{"slow", func(ctx context.Context, a []any) (any, error) {
			select {
			case <-time.After(time.Duration(numberProp(a, "ms", 0)) * time.Millisecond):
			case <-ctx.Done():
			}
			if v := prop(a, "value"); v != (protocol.Undefined{}) {
				return v, nil
			}
			return "slow", nil
		}},
		{"never", func(ctx context.Context, _ []any) (any, error) { <-ctx.Done(); return nil, ctx.Err() }},
		{"counter", func(context.Context, []any) (any, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.count++
			return float64(h.count), nil
		}},
		{"flaky", h.flaky},
		{"list", func(_ context.Context, a []any) (any, error) { return users(0, int(numberProp(a, "n", 5))), nil }},
		{"page", func(_ context.Context, a []any) (any, error) {
			cursor, size := int(numberProp(a, "cursor", 0)), int(numberProp(a, "size", 3))
			var next any
			if cursor+size < 8 {
				next = float64(cursor + size)
			}
			return object(pair{Key: "items", Value: users(cursor, max(0, min(size, 8-cursor)))}, pair{Key: "next", Value: next}), nil
		}},
		{"get-user", func(_ context.Context, a []any) (any, error) {
			id := numberProp(a, "id", math.NaN())
			if !(id >= 1 && id <= 8) {
				return nil, &protocol.ThrownError{Name: "NotFoundError", Message: "no user " + textOf(prop(a, "id")), Code: "E_NOT_FOUND"}
			}
			return user(int(id)), nil
		}},
		{"3d.render", member1("rendered")},
		{"delete", member1("deleted")},
		{"weird name!", constant("weird")},
	}
}

func users(from, n int) any {
	all := list()
	for i := range n {
		all.Items = append(all.Items, user(from+i+1))
	}
	return all
}

// member1 answers {key: argument ?? null}.
func member1(key string) fn {
	return func(_ context.Context, a []any) (any, error) {
		v := at(a, 0)
		if v == (protocol.Undefined{}) {
			v = nil
		}
		return object(pair{Key: key, Value: v}), nil
	}
}

// add is a function of JavaScript: what it says of an argument that is none, and what it makes of others, are its language's.
func add(_ context.Context, a []any) (any, error) {
	switch at(a, 0).(type) {
	case nil:
		return nil, errors.New("Cannot destructure property 'a' of 'object null' as it is null.")
	case protocol.Undefined:
		return nil, errors.New("Cannot destructure property 'a' of 'undefined' as it is undefined.")
	}
	x, isX := prop(a, "a").(float64)
	y, isY := prop(a, "b").(float64)
	if isX && isY {
		return x + y, nil
	}
	return math.NaN(), nil
}

func (h *corpusHost) flaky(_ context.Context, a []any) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := textOf(prop(a, "key"))
	h.tries[key]++
	if n := h.tries[key]; float64(n) <= numberProp(a, "failures", 1) {
		return nil, fmt.Errorf("flaky: attempt %d failed", n)
	}
	return object(pair{Key: "attempt", Value: float64(h.tries[key])}), nil
}

func corpusFailure(a []any) error {
	message, ok := prop(a, "message").(string)
	if !ok {
		message = "tool failed"
	}
	thrown := func(v any) error { return &protocol.ThrownError{Thrown: protocol.Value(textOfGraph(v))} }
	switch prop(a, "kind") {
	case "type":
		return &protocol.ThrownError{Name: "TypeError", Message: message}
	case "custom":
		return &protocol.ThrownError{Name: "NotFoundError", Message: message, Code: "E_NOT_FOUND"}
	case "string":
		return thrown(message)
	case "number":
		return thrown(42.0)
	case "object":
		return thrown(object(pair{Key: "code", Value: 1.0}, pair{Key: "message", Value: message}))
	case "null":
		return thrown(nil)
	case "undefined":
		return thrown(protocol.Undefined{})
	case "empty":
		return errors.New("")
	case "empty-string":
		return thrown("")
	case "multiline":
		return errors.New("line one\nline two\n  line three")
	case "long":
		return errors.New(strings.Repeat("e", 5000))
	}
	return errors.New(message)
}

func kinds(kind string) any {
	one := pair{Key: "b", Value: 1.0}
	a := pair{Key: "a", Value: 1.0}
	switch kind {
	case "date":
		return &protocol.Date{}
	case "map":
		return &protocol.Map{Entries: []protocol.Entry{{Key: "a", Value: 1.0}}}
	case "set":
		return &protocol.Set{Items: []any{1.0, 2.0}}
	case "nan":
		return math.NaN()
	case "infinity":
		return math.Inf(1)
	case "negzero":
		return math.Copysign(0, -1)
	case "bigint":
		return bigInt("10")
	case "undefined-prop":
		return object(pair{Key: "a", Value: protocol.Undefined{}}, one)
	case "undefined-item":
		return list(protocol.Undefined{}, 1.0)
	case "function-prop":
		return object(pair{Key: "f", Value: protocol.Handle{ID: "f"}}, one)
	case "symbol-prop":
		return object(one)
	case "cycle":
		o := object(a)
		o.Members = append(o.Members, pair{Key: "self", Value: o})
		return o
	case "sparse":
		return list(1.0, protocol.Hole(2), 4.0)
	case "error":
		return &protocol.ErrorValue{Name: "Error", Message: "a value, not a throw"}
	case "regexp":
		return &protocol.RegExp{Source: "a+b", Flags: "gi"}
	case "class":
		return object(pair{Key: "x", Value: 1.0}, pair{Key: "y", Value: 2.0})
	case "tojson":
		return object(pair{Key: "from", Value: "toJSON"})
	case "null-proto":
		return object(a)
	case "shared":
		o := object(pair{Key: "n", Value: 1.0})
		return object(pair{Key: "a", Value: o}, pair{Key: "b", Value: o})
	case "proto-key":
		return object(pair{Key: "__proto__", Value: object(pair{Key: "polluted", Value: true})}, a)
	case "tag-clash":
		return object(pair{Key: "__codemode_binary_v1__", Value: "Uint8Array"}, pair{Key: "data", Value: "AQID"})
	case "tag-odd":
		return object(pair{Key: "__codemode_binary_v1__", Value: "Uint8Array"}, pair{Key: "data", Value: 5.0})
	case "error-key":
		return object(pair{Key: "error", Value: "not an error, a field"})
	case "lone-surrogate":
		return protocol.UTF16{'a', 0xd800, 'b'}
	case "float":
		tenth := 0.1
		return tenth + 0.2
	case "big-int":
		return 9007199254740993.0
	}
	return nil
}

func (h *corpusHost) math() []named {
	return []named{
		{"multiply", func(_ context.Context, a []any) (any, error) { return at(a, 0).(float64) * at(a, 1).(float64), nil }},
		{"pow", func(_ context.Context, a []any) (any, error) {
			return math.Pow(numberProp(a, "base", 0), numberProp(a, "exp", 0)), nil
		}},
		{"stats", func(_ context.Context, a []any) (any, error) {
			xs := at(a, 0).(*protocol.Array).Items
			low, high, sum := math.Inf(1), math.Inf(-1), 0.0
			for _, x := range xs {
				low, high, sum = min(low, x.(float64)), max(high, x.(float64)), sum+x.(float64)
			}
			return object(pair{Key: "n", Value: float64(len(xs))}, pair{Key: "min", Value: low}, pair{Key: "max", Value: high}, pair{Key: "sum", Value: sum}), nil
		}},
	}
}

func (h *corpusHost) store() []named {
	locked := func(f func(key string, a []any) any) fn {
		return func(_ context.Context, a []any) (any, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			return f(textOf(at(a, 0)), a), nil
		}
	}
	return []named{
		{"set", locked(func(key string, a []any) any {
			if _, ok := h.kept[key]; !ok {
				h.order = append(h.order, key)
			}
			h.kept[key] = at(a, 1)
			return true
		})},
		{"get", locked(func(key string, _ []any) any { return h.kept[key] })},
		{"del", locked(func(key string, _ []any) any {
			_, ok := h.kept[key]
			delete(h.kept, key)
			h.order = slices.DeleteFunc(h.order, func(k string) bool { return k == key })
			return ok
		})},
		{"keys", locked(func(string, []any) any {
			keys := list()
			for _, k := range h.order {
				keys.Items = append(keys.Items, k)
			}
			return keys
		})},
	}
}

func (h *corpusHost) connector(name string) Connector {
	return Connector{name, func(ctx context.Context, method string, argument protocol.Value) (protocol.Value, error) {
		arg, err := protocol.Decode(argument, protocol.ValueBounds)
		if err != nil {
			return nil, err
		}
		h.called(ctx, name+"!."+method, arg)
		args := []any{arg}
		control := func(kind string, more ...pair) (protocol.Value, error) {
			return protocol.Encode(object(append([]pair{{Key: "__codemode_control__", Value: kind}}, more...)...))
		}
		switch method {
		case "echo":
			return argument, nil
		case "hello":
			if arg == (protocol.Undefined{}) {
				arg = nil
			}
			return protocol.Encode(object(pair{Key: "from", Value: name}, pair{Key: "args", Value: arg}))
		case "pause":
			return control("pause")
		case "error":
			message := prop(args, "message")
			if message == (protocol.Undefined{}) {
				message = "connector said no"
			}
			return control("error", pair{Key: "message", Value: message})
		case "date":
			return protocol.Encode(&protocol.Date{})
		case "map":
			return protocol.Encode(&protocol.Map{Entries: []protocol.Entry{{Key: "k", Value: &protocol.Date{}}}})
		case "bigint":
			return protocol.Encode(bigInt("1180591620717411303424"))
		case "bytes":
			return protocol.Encode(&protocol.Buffer{Kind: "Uint8Array", Data: pattern(int(numberProp(args, "n", 4)))})
		case "nothing":
			return nil, nil
		case "boom":
			return nil, &protocol.ThrownError{Name: "RangeError", Message: "thrown by the binding"}
		}
		return protocol.Encode(object(pair{Key: "unknown", Value: method}))
	}}
}
