package codemode

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/executord/executord/ipc/protocol"
)

// MaxTextUnits is how long the text of a result may be for a model, in code units of UTF-16, unless the host says otherwise.
const MaxTextUnits = 24_000

const (
	// truncated is in everything that stands for what was left out.
	truncated = "--- TRUNCATED ---"
	// leastUnits is what a part is worth keeping at: a part that would get less is left out, so that others get more.
	leastUnits = 64
)

// Text is what a model reads of a result, in at most limit code units of UTF-16: a string as it is, undefined as that word,
// any other value as JSON, indented where that fits. What is too long is cut inside: the JSON stays JSON of the same shape,
// the longest parts are cut first, and each cut is marked with "--- TRUNCATED ---". A value that JSON has no text for is
// an error.
func Text(v protocol.Value, limit int) (string, error) {
	value, err := asJSON(v)
	if err != nil {
		return "", err
	}
	switch s := value.(type) {
	case protocol.Undefined:
		return cutText("undefined", limit), nil
	case string:
		return cutText(s, limit), nil
	case protocol.UTF16:
		return cutText(s.String(), limit), nil
	}
	text := jsonText(fit(measure(value), limit))
	var indented bytes.Buffer
	if json.Indent(&indented, text, "", "  ") == nil && units(indented.String()) <= limit {
		return indented.String(), nil
	}
	return cutText(string(text), limit), nil
}

// cutText cuts s to limit units, mark included.
func cutText(s string, limit int) string {
	n := units(s)
	if n <= limit {
		return s
	}
	mark := fmt.Sprintf("\n\n%s %d characters", truncated, n)
	if len(mark) >= limit {
		return firstUnits(s, limit)
	}
	return firstUnits(s, limit-len(mark)) + mark
}

// firstUnits is the beginning of s in at most n units.
func firstUnits(s string, n int) string {
	for i, r := range s {
		if n -= units(string(r)); n < 0 {
			return s[:i]
		}
	}
	return s
}

// sized is a tree with the lengths of its compact JSON texts in units.
type sized struct {
	value any
	size  int
	parts []sized // items of an array, values of an object's members
}

// measure takes what asJSON gives, and puts bytes as base64. It recurses as deep as that is nested.
func measure(v any) sized {
	s := sized{value: v}
	switch v := v.(type) {
	case *protocol.Array:
		out := &protocol.Array{}
		s.value, s.size = out, len("[]")+max(0, len(v.Items)-1)
		for _, item := range v.Items {
			part := measure(item)
			out.Items, s.parts = append(out.Items, part.value), append(s.parts, part)
		}
	case *protocol.Object:
		out := &protocol.Object{}
		s.value, s.size = out, len("{}")+max(0, len(v.Members)-1)
		for _, m := range v.Members {
			part := measure(m.Value)
			s.size += keySize(m.Key)
			out.Members, s.parts = append(out.Members, protocol.Member{Key: m.Key, Value: part.value}), append(s.parts, part)
		}
	case *protocol.Buffer:
		return measure(&protocol.Object{Members: []protocol.Member{{Key: "@bytes", Value: base64.StdEncoding.EncodeToString(v.Data)}}})
	case protocol.UTF16:
		return measure(v.String())
	default:
		s.size = units(string(jsonText(v)))
	}
	for _, part := range s.parts {
		s.size += part.size
	}
	return s
}

// keySize is the length of a key and its colon.
func keySize(key string) int { return units(string(jsonText(key))) + len(":") }

// fit makes s fit in limit units as far as that can be.
func fit(s sized, limit int) any {
	if s.size <= limit {
		return s.value
	}
	switch v := s.value.(type) {
	case string:
		return fitString(v, limit)
	case *protocol.Array:
		return fitArray(s, v, limit)
	case *protocol.Object:
		return fitObject(s, v, limit)
	}
	return truncated
}

func fitString(s string, limit int) string {
	mark := fmt.Sprintf(" %s %d characters", truncated, units(s))
	room := limit - len(mark) - len(`""`)
	if room <= 0 {
		return truncated
	}
	kept := 0
	for i, r := range s {
		if room -= units(string(jsonText(string(r)))) - len(`""`); room < 0 {
			break
		}
		kept = i + utf8.RuneLen(r)
	}
	return s[:kept] + mark
}

func fitArray(s sized, a *protocol.Array, limit int) any {
	mark := func(left int) string { return fmt.Sprintf("%s %d more items", truncated, left) }
	costs := make([]int, len(s.parts))
	for i := range costs {
		costs[i] = len(",")
	}
	kept, room := keep(s.parts, costs, limit-len("[]"), len(mark(len(a.Items)))+len(`"",`))
	out := &protocol.Array{}
	for i, n := range share(s.parts[:kept], room) {
		out.Items = append(out.Items, fit(s.parts[i], n))
	}
	if left := len(a.Items) - kept; left > 0 {
		out.Items = append(out.Items, mark(left))
	}
	return out
}

func fitObject(s sized, o *protocol.Object, limit int) any {
	mark := func(left int) string { return fmt.Sprintf("%d more keys", left) }
	costs := make([]int, len(s.parts))
	for i, m := range o.Members {
		costs[i] = keySize(m.Key) + len(",")
	}
	kept, room := keep(s.parts, costs, limit-len("{}"), keySize(truncated)+len(mark(len(o.Members)))+len(`"",`))
	out := &protocol.Object{}
	for i, n := range share(s.parts[:kept], room) {
		out.Members = append(out.Members, protocol.Member{Key: o.Members[i].Key, Value: fit(s.parts[i], n)})
	}
	if left := len(o.Members) - kept; left > 0 {
		out.Members = append(out.Members, protocol.Member{Key: truncated, Value: mark(left)})
	}
	return out
}

// keep tells how many parts, the first ones, are kept in room units: all of them, or as many as get leastUnits, or all that
// they need, beside a mark of that length. left is the room for their values.
func keep(parts []sized, costs []int, room, mark int) (kept, left int) {
	kept, left = keepIn(parts, costs, room)
	if kept < len(parts) {
		kept, left = keepIn(parts, costs, room-mark)
	}
	return kept, left
}

func keepIn(parts []sized, costs []int, room int) (kept, left int) {
	least := 0
	for left = room; kept < len(parts); kept++ {
		least += min(parts[kept].size, leastUnits)
		if left-costs[kept] < least {
			break
		}
		left -= costs[kept]
	}
	return kept, left
}

// share gives each part its size or an equal part of what is left, the small ones first.
func share(parts []sized, room int) []int {
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return parts[a].size - parts[b].size })
	shares := make([]int, len(parts))
	for i, at := range order {
		shares[at] = min(parts[at].size, max(0, room)/(len(parts)-i))
		room -= shares[at]
	}
	return shares
}

// jsonText is the JSON text of what measure has, and of a key.
func jsonText(v any) []byte { return appendJSON(nil, v) }

func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case *protocol.Array:
		dst = append(dst, '[')
		for i, item := range v.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item)
		}
		return append(dst, ']')
	case *protocol.Object:
		dst = append(dst, '{')
		for i, m := range v.Members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSON(dst, m.Key), ':')
			dst = appendJSON(dst, m.Value)
		}
		return append(dst, '}')
	case float64:
		return append(dst, numberText(v)...)
	}
	// nil, booleans and strings always have a text.
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
