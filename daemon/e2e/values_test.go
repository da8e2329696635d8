package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// TestValuesSurviveTheWholeWay: a value goes from a client in Go to a program, from there to a tool of the client's, back,
// and out again, and is the same. The client in JavaScript has the same test (packaging/npm/test/values.test.mjs).
func TestValuesSurviveTheWholeWay(t *testing.T) {
	leaves := vectors(t)
	s := start(t, testbin.Worker(t), "--workers", "1")
	c := s.dial()
	defer c.Close()
	rounds := 0
	rapid.Check(t, func(rt *rapid.T) {
		if rounds++; testing.Short() && rounds > 20 {
			return
		}
		text := grow(rt, leaves, 4)
		r := program("async (x) => [x, await tools.echo(x)]")
		r.Input = protocol.Value(text)
		r.Provide(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{"echo": func(_ context.Context, args []protocol.Value) (protocol.Value, error) {
			return args[0], nil
		}}})
		o, err := c.Execute(t.Context(), r)
		if err == nil {
			err = o.Err()
		}
		if err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		if got, want := oneText(rt, o.Value), oneText(rt, protocol.Value("["+text+","+text+"]")); got != want {
			rt.Errorf("%s came back as\n%s, want\n%s", text, got, want)
		}
	})
}

// grow draws the text of a value around the vectors.
func grow(rt *rapid.T, leaves []string, depth int) string {
	kind := rapid.SampledFrom([]string{"leaf", "array", "object", "map", "set", "holes"}).Draw(rt, "kind")
	if depth == 0 || kind == "leaf" {
		return rapid.SampledFrom(leaves).Draw(rt, "leaf")
	}
	var items []string
	for range rapid.IntRange(0, 4).Draw(rt, "items") {
		items = append(items, grow(rt, leaves, depth-1))
	}
	list := strings.Join(items, ",")
	switch kind {
	case "set": // equal primitives would be one
		return `{"@set":[[` + list + `]]}`
	case "map":
		pairs := make([]string, len(items))
		for i, item := range items {
			pairs[i] = fmt.Sprintf("[%d,%s]", i, item)
		}
		return `{"@map":[` + strings.Join(pairs, ",") + `]}`
	case "object":
		members := make([]string, len(items))
		for i, item := range items {
			key := rapid.SampledFrom([]string{"a", "__proto__", "then", "", "é😀", "toJSON", "@x"}).Draw(rt, "key")
			members[i] = fmt.Sprintf("%q:%s", fmt.Sprint(key, "-", i), item)
		}
		return "{" + strings.Join(append(members, `"last":0`), ",") + "}"
	case "holes":
		return `[{"@hole":2}` + strings.Repeat(",", min(1, len(items))) + list + "]"
	}
	return "[" + list + "]"
}

// oneText is a value in the one text that Encode has for it.
func oneText(rt *rapid.T, v protocol.Value) string {
	graph, err := protocol.Decode(v, protocol.ValueBounds)
	if err != nil {
		rt.Fatalf("%s: %v", v, err)
	}
	text, err := protocol.Encode(graph)
	if err != nil {
		rt.Fatal(err)
	}
	return string(text)
}

// vectors are the texts of the codec's vectors that can stand anywhere: without references, which are from the root, and
// without what only a retained program has. Errors get a stack in a program that they had not before.
func vectors(t *testing.T) (texts []string) {
	file, err := os.ReadFile("../../ipc/protocol/testdata/values.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(file)); lines.Scan(); {
		var row struct {
			JS    string
			Value json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		text := string(row.Value)
		apart := strings.Contains(text, "@ref") || strings.Contains(text, "@handle") || strings.Contains(text, "@error") && !strings.Contains(text, `"stack"`)
		if row.JS == "" || text == "" || apart || len(text) > 10_000 {
			continue
		}
		texts = append(texts, text)
	}
	if len(texts) < 100 {
		t.Fatalf("only %d vectors", len(texts))
	}
	return texts
}
