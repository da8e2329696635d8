package executor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

type user struct {
	ID   int       `json:"id"`
	Born time.Time `json:"born,omitzero"`
}

type key struct{}

func ExampleRequest_Provide() {
	var r executor.Request
	r.Code = `await db.user(7)`
	r.Provide(executor.Provider{Name: "db", Tools: map[string]executor.Tool{
		"user": executor.Func(func(_ context.Context, id int) (user, error) {
			if id != 7 {
				return user{}, errors.New("no such user")
			}
			return user{ID: id, Born: time.UnixMilli(0)}, nil
		}),
	}})

	// An Executor does this when the program calls db.user(7).
	v, err := r.Call(context.Background(), executor.ToolCall{Provider: "db", Path: []string{"user"}, Args: protocol.Value(`[7]`)})
	fmt.Println(string(v), err)
	v, err = r.Call(context.Background(), executor.ToolCall{Provider: "db", Path: []string{"users"}})
	fmt.Println(string(v), err)
	// Output:
	// {"id":7,"born":{"@date":0}} <nil>
	//  Tool "users" not found
}

func TestFunc(t *testing.T) {
	failed := &protocol.ThrownError{Name: "NotFound", Message: "gone"}
	tests := []struct {
		name string
		f    any
		args string
		want string // of the value, or of the error
	}{
		{"nothing", func() {}, `[]`, `{"@undefined":true}`},
		{"sum", func(a, b int) int { return a + b }, `[1,2]`, `3`},
		{"context", func(ctx context.Context, s string) string { return s + fmt.Sprint(ctx.Value(key{})) }, `["a"]`, `"av"`},
		{"missing arguments", func(a int, b *int, c []string) any { return []any{a, b, c == nil} }, `[]`, `[0,null,true]`},
		{"extra arguments", func(a int) int { return a }, `[1,2,{"@date":null}]`, `1`},
		{"undefined argument", func(a int) int { return a }, `[{"@undefined":true}]`, `0`},
		{"variadic", func(sep string, parts ...string) string { return strings.Join(parts, sep) }, `["-","a","b"]`, `"a-b"`},
		{"variadic without any", func(parts ...string) int { return len(parts) }, `[]`, `0`},
		{"raw", func(v protocol.Value) protocol.Value { return v }, `[{"@bigint":"5"}]`, `{"@bigint":"5"}`},
		{"bytes", func(b []byte) []byte { return b[1:] }, `[{"@bytes":"AQI="}]`, `{"@bytes":"Ag=="}`},
		{"struct", func(u user) int { return u.ID }, `[{"id":5,"x":1}]`, `5`},
		{"any", func(v any) any { return v }, `[{"a":[1,{"@number":"NaN"}]}]`, `{"a":[1,{"@number":"NaN"}]}`},
		{"nil error", func() error { return nil }, `[]`, `{"@undefined":true}`},
		{"error", func() error { return errors.New("no") }, `[]`, "no"},
		{"value and error", func() (int, error) { return 1, failed }, `[]`, "NotFound: gone"},
		{"value and no error", func() (int, error) { return 1, nil }, `[]`, `1`},
		{"wrong kind", func(int) {}, `["x"]`, "TypeError: argument 1: a string does not fit Go type int"},
		{"wrong kind in the rest", func(...int) {}, `[1,"x"]`, "TypeError: argument 2: a string does not fit Go type int"},
		{"result too large", func() int64 { return 1 << 60 }, `[]`, "TypeError: result: 1152921504606846976 is too large for a number; use *big.Int"},
		{"panic", func() { panic("oh") }, `[]`, `Tool panicked: oh`},
		{"nil pointer", func(u *user) int { return u.ID }, `[null]`, `Tool panicked: runtime error: invalid memory address or nil pointer dereference`},
		{"part of an argument", func(user) {}, `[{"id":[]}]`, "TypeError: argument 1 at /id: an array does not fit Go type int"},
	}
	ctx := context.WithValue(context.Background(), key{}, "v")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r executor.Request
			r.Provide(executor.Provider{Name: "p", Tools: map[string]executor.Tool{"f": executor.Func(tt.f)}})
			v, err := r.Call(ctx, executor.ToolCall{Provider: "p", Path: []string{"f"}, Args: protocol.Value(tt.args)})
			got := string(v)
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestFuncRefuses(t *testing.T) {
	tests := []struct {
		name string
		f    any
	}{
		{"nil", nil},
		{"nil function", (func())(nil)},
		{"no function", 5},
		{"channel", func(chan int) {}},
		{"callback", func(func()) {}},
		{"context second", func(int, context.Context) {}},
		{"channels", func([]chan int) {}},
		{"two values", func() (int, int) { return 0, 0 }},
		//lint:ignore ST1008 the fault under test
		{"error first", func() (error, int) { return nil, 0 }},
		{"three results", func() (int, int, error) { return 0, 0, nil }},
		{"channel result", func() chan int { return nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("taken")
				}
			}()
			executor.Func(tt.f)
		})
	}
}

func TestProvide(t *testing.T) {
	var r executor.Request
	r.Code = "1"
	r.Providers = append(make([]protocol.Provider, 0, 8), protocol.Provider{Name: "own"})
	r.Call = func(_ context.Context, c executor.ToolCall) (protocol.Value, error) {
		return protocol.Value(`"before:` + c.Provider + `"`), nil
	}
	copied := r
	r.Provide(
		executor.Provider{Name: "listed", Tools: map[string]executor.Tool{"b": say("b"), "a": say("a")}},
		executor.Provider{Name: "none"},
		executor.Provider{
			Name: "any", Tools: map[string]executor.Tool{"known": say("known")},
			Any: func(_ context.Context, path []string, args []protocol.Value) (protocol.Value, error) {
				if path[0] == "boom" {
					panic(errors.New("lost"))
				}
				return protocol.Marshal(fmt.Sprint(path, len(args)))
			},
		},
	)
	copied.Provide(executor.Provider{Name: "other"})
	if err := protocol.Validate(&r.Execute); err != nil {
		t.Fatal(err)
	}
	got, err := protocol.EncodeParams(r.Providers)
	want := `[{"name":"own"},{"name":"listed","tools":["a","b"]},{"name":"none","tools":[]},{"name":"any","tools":"*"}]`
	if err != nil || string(got) != want {
		t.Errorf("announced %s, %v", got, err)
	}
	calls := []struct{ provider, path, args, want string }{
		{"listed", "a", `[]`, `"a"`},
		{"listed", "c", `[]`, `Tool "c" not found`},
		{"listed", "a.b", `[]`, `Tool "a.b" not found`},
		{"listed", "", `[]`, `Tool "" not found`},
		{"none", "toString", `[]`, `Tool "toString" not found`},
		{"any", "known", `[]`, `"known"`},
		{"any", "x.y", `[1,[2]]`, `"[x y] 2"`},
		{"any", "boom", `[]`, `Tool "boom" panicked: lost`},
		{"own", "x", `[]`, `"before:own"`},
		{"any", "x", `[1`, `cannot read the arguments: cannot accept JSON text: the text ends too early at byte 2`},
	}
	for _, c := range calls {
		v, err := r.Call(context.Background(), executor.ToolCall{
			Provider: c.provider, Path: strings.Split(c.path, "."), Args: protocol.Value(c.args),
		})
		got := string(v)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s.%s: got %s, want %s", c.provider, c.path, got, c.want)
		}
	}
}

func say(s string) executor.Tool {
	return func(context.Context, []protocol.Value) (protocol.Value, error) { return protocol.Marshal(s) }
}

func TestProvideAlone(t *testing.T) {
	var r executor.Request
	r.Provide()
	_, err := r.Call(context.Background(), executor.ToolCall{Provider: "x", Path: []string{"y"}})
	var thrown *protocol.ThrownError
	if !errors.As(err, &thrown) || thrown.Message != `Tool "y" not found` {
		t.Errorf("got %v", err)
	}
}
