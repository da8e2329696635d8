package codemode

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
	"unicode/utf16"

	"github.com/executord/executord/ipc/protocol"
)

// Arguments of tools and what they answer have the values of JSON, and bytes, which the harness puts beside the text with
// their number in their place: an object whose only member has the mark as its key.

// arguments are those in the text of a JSON array, bytes being the array of what stands beside it. An argument that JSON has no
// value for is null there.
func arguments(text, bytes protocol.Value, mark string) ([]protocol.Value, error) {
	var plain string
	if err := protocol.Unmarshal(text, &plain); err != nil {
		return nil, fmt.Errorf("cannot read the arguments: %w", err)
	}
	beside, err := graphOf(bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read the arguments: %w", err)
	}
	if err := protocol.Check([]byte(plain), protocol.ValueBounds); err != nil {
		return nil, fmt.Errorf("cannot read the arguments: %w", err)
	}
	r := reader{text: plain, mark: mark}
	if list, ok := beside.(*protocol.Array); ok {
		r.bytes = list.Items
	}
	list, ok := r.value().(*protocol.Array)
	if !ok {
		return nil, errors.New("cannot read the arguments: they are no array")
	}
	values := make([]protocol.Value, len(list.Items))
	for i, item := range list.Items {
		if values[i], err = protocol.Encode(item); err != nil {
			return nil, fmt.Errorf("cannot read the arguments: %w", err)
		}
	}
	return values, nil
}

// reader makes a graph of a text that is JSON, which has been checked. It recurses as deep as the text is nested, which the
// check bounds.
type reader struct {
	text  string
	at    int
	mark  string
	bytes []any
}

func (r *reader) space() {
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\t' || r.text[r.at] == '\n' || r.text[r.at] == '\r') {
		r.at++
	}
}

func (r *reader) value() any {
	r.space()
	switch r.text[r.at] {
	case '{':
		return r.object()
	case '[':
		list := &protocol.Array{}
		r.parts(']', func() { list.Items = append(list.Items, r.value()) })
		return list
	}
	v, err := protocol.Decode(protocol.Value(r.scalar()), protocol.ValueBounds)
	if err != nil {
		return nil // a number beyond the range of numbers
	}
	return v
}

// parts reads what stands between brackets, separated by commas.
func (r *reader) parts(end byte, part func()) {
	r.at++
	for r.space(); r.text[r.at] != end; r.space() {
		if r.text[r.at] == ',' {
			r.at++
			r.space()
		}
		part()
	}
	r.at++
}

func (r *reader) object() any {
	o := &protocol.Object{}
	r.parts('}', func() {
		key := r.key()
		r.space()
		r.at++
		o.Members = append(o.Members, protocol.Member{Key: key, Value: r.value()})
	})
	if len(o.Members) == 1 && o.Members[0].Key == r.mark {
		if n, ok := o.Members[0].Value.(float64); ok && n >= 0 && int(n) < len(r.bytes) {
			return r.bytes[int(n)]
		}
	}
	return o
}

// scalar is the text of a string, a number or a word.
func (r *reader) scalar() string {
	start := r.at
	if r.text[start] == '"' {
		for r.at++; r.text[r.at] != '"'; r.at++ {
			if r.text[r.at] == '\\' {
				r.at++
			}
		}
		r.at++
		return r.text[start:r.at]
	}
	for r.at < len(r.text) && r.text[r.at] != ',' && r.text[r.at] != ']' && r.text[r.at] != '}' && r.text[r.at] > ' ' {
		r.at++
	}
	return r.text[start:r.at]
}

// key reads a key. Of one that is not well formed each lone surrogate is the three bytes of its code point, as in an Object.
func (r *reader) key() string {
	text := r.scalar()
	key := ""
	// A key is no Value: there its surrogates have another form.
	_ = protocol.Members([]byte("{"+text+":0}"), protocol.ValueBounds, func(k []byte, _ json.RawMessage) error {
		key = string(k)
		return nil
	})
	return key
}

// asJSON is what JSON.stringify and JSON.parse would make of v, with bytes kept: any kind of view becomes a Uint8Array. The
// error is what the engine would say.
func asJSON(v protocol.Value) (any, error) {
	graph, err := graphOf(v)
	if err != nil {
		return nil, err
	}
	w := writer{open: map[any]bool{}, left: protocol.ValueBounds.Nodes}
	value, err := w.value(graph)
	if err != nil {
		return nil, err
	}
	if value == absent {
		return protocol.Undefined{}, nil
	}
	return value, nil
}

// writer makes a tree of a graph. It recurses as deep as that, which was decoded within bounds, is nested.
type writer struct {
	open map[any]bool // objects that the one at hand is in
	left int          // values that may be made; what is referred to twice is made twice
}

// absent is what JSON has no value for: it is left out of objects, and null in arrays.
var absent = new(struct{ _ byte })

func (w *writer) value(v any) (any, error) {
	if w.left--; w.left < 0 {
		return nil, errors.New("the answer of the tool has too many values")
	}
	switch v := v.(type) {
	case protocol.Undefined, protocol.Handle:
		return absent, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, nil
		}
		return v + 0, nil // -0 becomes 0
	case *big.Int:
		//lint:ignore ST1005 the words of the engine
		return nil, errors.New("Do not know how to serialize a BigInt")
	case *protocol.Boxed:
		return w.value(v.Value)
	case *protocol.Date:
		return dateText(v), nil
	case *protocol.URL:
		return v.Href, nil
	case *protocol.Buffer:
		if v.Kind == "ArrayBuffer" {
			return &protocol.Buffer{Kind: v.Kind, Data: v.Data}, nil
		}
		return &protocol.Buffer{Kind: "Uint8Array", Data: v.Data}, nil
	case *protocol.Array:
		return w.array(v)
	case *protocol.Object:
		return w.object(v, v.Members)
	case *protocol.ErrorValue:
		// Its cause and its errors cannot be listed, so they are left out as its message is.
		own := make([]protocol.Member, 0, len(v.Props))
		for _, m := range v.Props {
			if m.Key != "cause" && m.Key != "errors" {
				own = append(own, m)
			}
		}
		return w.object(v, own)
	case nil, bool, string, protocol.UTF16:
		return v, nil
	}
	return &protocol.Object{}, nil // maps, sets, and all else that keeps what it has inside
}

func dateText(d *protocol.Date) any {
	if math.IsNaN(d.Ms) {
		return nil
	}
	t := time.UnixMilli(int64(d.Ms)).UTC()
	switch year := t.Year(); {
	case year > 9999:
		return fmt.Sprintf("+%06d%s", year, t.Format("-01-02T15:04:05.000Z"))
	case year < 0:
		return fmt.Sprintf("-%06d%s", -year, t.Format("-01-02T15:04:05.000Z"))
	}
	return t.Format("2006-01-02T15:04:05.000Z")
}

// within makes what is in the object v.
func (w *writer) within(v any, parts func() error) error {
	if w.open[v] {
		//lint:ignore ST1005 the words of the engine
		return errors.New("Converting circular structure to JSON")
	}
	w.open[v] = true
	defer delete(w.open, v)
	return parts()
}

func (w *writer) array(a *protocol.Array) (any, error) {
	list := &protocol.Array{Items: make([]any, 0, len(a.Items))}
	return list, w.within(a, func() error {
		for _, item := range a.Items {
			holes, ok := item.(protocol.Hole)
			if !ok {
				value, err := w.value(item)
				if err != nil {
					return err
				}
				if value == absent {
					value = nil
				}
				list.Items = append(list.Items, value)
				continue
			}
			if w.left -= int(holes); w.left < 0 {
				return errors.New("the answer of the tool has too many values")
			}
			list.Items = append(list.Items, make([]any, holes)...)
		}
		return nil
	})
}

func (w *writer) object(v any, members []protocol.Member) (any, error) {
	o := &protocol.Object{Members: make([]protocol.Member, 0, len(members))}
	return o, w.within(v, func() error {
		for _, m := range members {
			value, err := w.value(m.Value)
			if err != nil {
				return err
			}
			if value != absent {
				o.Members = append(o.Members, protocol.Member{Key: m.Key, Value: value})
			}
		}
		return nil
	})
}

// textOf is what String makes of v.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return v
	case protocol.UTF16:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return numberText(v)
	case *big.Int:
		return v.String()
	case protocol.Undefined:
		return "undefined"
	case *protocol.ErrorValue:
		return v.Message
	case *protocol.Boxed:
		return textOf(v.Value)
	case *protocol.Array:
		return "" // the texts of what is in it; nobody throws one
	}
	return "[object Object]"
}

// numberText is ECMA-262, 6.1.6.1.20, for base 10.
func numberText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		if f < 0 {
			return "-Infinity"
		}
		return "Infinity"
	case f == 0:
		return "0"
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	if n := len(s); s[n-2] == '0' && (s[n-3] == '-' || s[n-3] == '+') { // at least two digits of the exponent in Go
		s = s[:n-2] + s[n-1:]
	}
	return s
}

// units is how many code units of UTF-16 s has: what JavaScript calls its length.
func units(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(max(r, 0))
	}
	return n
}
