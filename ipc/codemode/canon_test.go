package codemode

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/executord/executord/ipc/protocol"
)

// The canonical form of values that the corpus has, as a graph of plain JSON: packaging/npm/test/differential/canon.mjs says
// what it looks like.

type pair = protocol.Member

func object(members ...pair) *protocol.Object { return &protocol.Object{Members: members} }

func list(items ...any) *protocol.Array { return &protocol.Array{Items: items} }

func tagged(tag string, members ...pair) *protocol.Object {
	return object(append([]pair{{Key: "$t", Value: tag}}, members...)...)
}

type canonical struct{ seen map[any]string }

func canon(v any) any { return (&canonical{map[any]string{}}).value(v, "$") }

func (c *canonical) value(v any, path string) any {
	switch v := v.(type) {
	case nil, bool:
		return v
	case string:
		return canonText(utf16.Encode([]rune(v)), v)
	case protocol.UTF16:
		return canonText(v, v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 && math.Signbit(v) {
			text := numberText(v)
			if v == 0 {
				text = "-0"
			}
			return tagged("num", pair{Key: "v", Value: text})
		}
		return v
	case protocol.Undefined:
		return tagged("undefined")
	case *big.Int:
		return tagged("bigint", pair{Key: "v", Value: v.String()})
	case protocol.Handle:
		return tagged("fn")
	}
	if before, ok := c.seen[v]; ok {
		return tagged("ref", pair{Key: "path", Value: before})
	}
	c.seen[v] = path
	return c.object(v, path)
}

func (c *canonical) object(v any, path string) any {
	switch v := v.(type) {
	case *protocol.Array:
		return c.array(v, path)
	case *protocol.Object:
		o := object(c.members(v.Members, path)...)
		if _, ok := member(v, "$t"); ok {
			return tagged("esc", pair{Key: "v", Value: o})
		}
		return o
	case *protocol.Buffer:
		return canonBytes(v)
	case *protocol.Date:
		if d := dateText(v); d != nil {
			return tagged("date", pair{Key: "v", Value: d})
		}
		return tagged("date", pair{Key: "v", Value: "Invalid"})
	case *protocol.RegExp:
		return tagged("regexp", pair{Key: "source", Value: v.Source}, pair{Key: "flags", Value: v.Flags})
	case *protocol.Map:
		entries := list()
		for i, e := range v.Entries {
			entries.Items = append(entries.Items, list(c.value(e.Key, fmt.Sprintf("%s<k%d>", path, i)), c.value(e.Value, fmt.Sprintf("%s<v%d>", path, i))))
		}
		return tagged("map", pair{Key: "v", Value: entries})
	case *protocol.Set:
		items := list()
		for i, item := range v.Items {
			items.Items = append(items.Items, c.value(item, fmt.Sprintf("%s<%d>", path, i)))
		}
		return tagged("set", pair{Key: "v", Value: items})
	case *protocol.Boxed:
		return tagged("boxed", pair{Key: "v", Value: canon(v.Value)})
	case *protocol.ErrorValue:
		return c.errorValue(v, path)
	case *protocol.Headers:
		pairs := list()
		for _, h := range v.List {
			pairs.Items = append(pairs.Items, list(h.Name, h.Value))
		}
		return tagged("obj", pair{Key: "class", Value: "Headers"}, pair{Key: "v", Value: pairs})
	}
	return tagged("obj", pair{Key: "class", Value: strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", v), "*protocol."), "Value")}, pair{Key: "own", Value: object()})
}

func (c *canonical) members(list []pair, path string) (out []pair) {
	for _, m := range list {
		out = append(out, pair{Key: m.Key, Value: c.value(m.Value, path+"."+m.Key)})
	}
	return out
}

func (c *canonical) array(a *protocol.Array, path string) any {
	out := list()
	for _, item := range a.Items {
		if holes, ok := item.(protocol.Hole); ok {
			for range holes {
				out.Items = append(out.Items, tagged("hole"))
			}
			continue
		}
		out.Items = append(out.Items, c.value(item, path+"["+strconv.Itoa(len(out.Items))+"]"))
	}
	return out
}

func (c *canonical) errorValue(e *protocol.ErrorValue, path string) any {
	out := tagged("error", pair{Key: "name", Value: e.Name}, pair{Key: "message", Value: canon(e.Message)})
	var own []pair
	for _, m := range e.Props {
		if m.Key != "cause" && m.Key != "errors" {
			own = append(own, m)
			continue
		}
		out.Members = append(out.Members, pair{Key: m.Key, Value: c.value(m.Value, path+"."+m.Key)})
	}
	if own != nil {
		out.Members = append(out.Members, pair{Key: "own", Value: object(c.members(own, path)...)})
	}
	return out
}

func canonText(u []uint16, v any) any {
	if len(u) <= 1024 {
		return v
	}
	return tagged("str", pair{Key: "len", Value: float64(len(u))}, pair{Key: "fnv", Value: digestUnits(u)}, pair{Key: "head", Value: string(utf16.Decode(u[:48]))})
}

func canonBytes(b *protocol.Buffer) any {
	kind, length := pair{Key: "kind", Value: b.Kind}, pair{Key: "len", Value: float64(len(b.Data))}
	if len(b.Data) > 1024 {
		return tagged("bytes", kind, length, pair{Key: "fnv", Value: digest(b.Data)})
	}
	text, _ := protocol.Marshal(b.Data)
	return tagged("bytes", kind, length, pair{Key: "v", Value: strings.TrimSuffix(strings.TrimPrefix(string(text), `{"@bytes":"`), `"}`)})
}

func digest(data []byte) string {
	h := uint32(0x811c9dc5)
	for _, b := range data {
		h = (h ^ uint32(b)) * 0x01000193
	}
	return fmt.Sprintf("%08x", h)
}

func digestUnits(u []uint16) string {
	data := make([]byte, 0, 2*len(u))
	for _, x := range u {
		data = append(data, byte(x), byte(x>>8))
	}
	return digest(data)
}

func canonLogs(lines []string) any {
	texts := list()
	for _, l := range lines {
		texts.Items = append(texts.Items, l)
	}
	if len(lines) <= 300 {
		return canon(texts)
	}
	n := len(lines)
	return tagged("logs", pair{Key: "n", Value: float64(n)}, pair{Key: "fnv", Value: digestUnits(utf16.Encode([]rune(strings.Join(lines, "\n"))))},
		pair{Key: "first", Value: canon(list(texts.Items[:3]...))}, pair{Key: "last", Value: canon(list(texts.Items[n-3:]...))})
}

// plain reads JSON as a graph, in which no key has a meaning.
func plain(text []byte) any {
	if text == nil {
		return nil
	}
	return (&reader{text: string(text)}).value()
}

// textOfGraph is one text for one value of plain JSON, order of keys included.
func textOfGraph(v any) string {
	text, err := protocol.Encode(v)
	if err != nil {
		return "not to be written: " + err.Error()
	}
	return string(text)
}

func bigInt(digits string) *big.Int {
	i, _ := new(big.Int).SetString(digits, 10)
	return i
}
