package protocol

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Encode writes an exact graph, as Decode makes it, within ValueBounds. A pointer that comes again, or leads back to
// what it is in, becomes a reference. Strings that are not valid UTF-8 get U+FFFD; keys keep lone surrogates. The error
// is a *ValueError.
func Encode(v any) (Value, error) {
	e := encoder{seen: map[any]*spot{}}
	if err := e.value(v, nil); err != nil {
		return nil, err
	}
	return e.done()
}

// encoder writes values. It recurses as deep as the text gets nested, and stops at the bound.
type encoder struct {
	dst   []byte
	depth int
	nodes int
	seen  map[any]*spot // pointers of the codec's types
	loose bool          // ordinary Go values are taken too
}

// spot is where a value stands in the text, as a chain of steps from the innermost out. Nil is the root.
type spot struct {
	in   *spot
	step string
}

func (s *spot) then(step string) *spot { return &spot{s, step} }
func (s *spot) item(i int) *spot       { return &spot{s, strconv.Itoa(i)} }

// pointer is the JSON Pointer of s.
func (s *spot) pointer() string {
	var steps []string
	for ; s != nil; s = s.in {
		steps = append(steps, escapePointer(s.step))
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(steps[i])
	}
	return b.String()
}

func fail(at *spot, format string, args ...any) error {
	return &ValueError{at.pointer(), fmt.Sprintf(format, args...)}
}

// done returns the text when it is within the bounds to the byte; deeper and count keep it only near them.
func (e *encoder) done() (Value, error) {
	if err := Check(e.dst, ValueBounds); err != nil {
		return nil, fail(nil, "%s", err)
	}
	return e.dst, nil
}

// deeper enters levels of nesting, to be left with shallower.
func (e *encoder) deeper(levels int) error {
	if e.depth += levels; e.depth > ValueBounds.Depth {
		return fail(nil, "nested deeper than the limit of %d, perhaps without end", ValueBounds.Depth)
	}
	return nil
}

func (e *encoder) shallower(levels int) { e.depth -= levels }

// count counts one value, and stops an encoding that has become too large before all of it is made.
func (e *encoder) count() error {
	if e.nodes++; e.nodes > ValueBounds.Nodes || len(e.dst) > ValueBounds.Bytes {
		return fail(nil, "larger than the limit of %d values or %d bytes", ValueBounds.Nodes, ValueBounds.Bytes)
	}
	return nil
}

func (e *encoder) put(s string)             { e.dst = append(e.dst, s...) }
func (e *encoder) comma(i int)              { e.dst = comma(e.dst, i) }
func (e *encoder) wtf8(s string)            { e.dst = appendWTF8(e.dst, s) }
func (e *encoder) tag(name string)          { e.dst = append(append(append(e.dst, `{"`...), name...), `":`...) }
func (e *encoder) tagString(name, s string) { e.tag(name); e.wtf8(s); e.put("}") }

func (e *encoder) handle(h Handle) {
	if h.Kind == HandleFunction {
		e.tagString("@handle", h.ID)
		return
	}
	e.tag("@handle")
	e.put("[")
	e.wtf8(h.ID)
	e.put(",")
	e.wtf8(string(h.Kind))
	e.put("]}")
}

func (e *encoder) tagBase64(name string, data []byte) {
	e.tag(name)
	e.base64(data)
	e.put("}")
}

func (e *encoder) base64(data []byte) {
	e.put(`"`)
	e.dst = base64.StdEncoding.AppendEncode(e.dst, data)
	e.put(`"`)
}

// value writes v, which stands at the spot.
func (e *encoder) value(v any, at *spot) error {
	if err := e.count(); err != nil {
		return err
	}
	if isTooLong(v) {
		return fail(at, "a BigInt has more than %d bits", MaxBigIntBits)
	}
	if e.primitive(v) {
		return nil
	}
	switch v.(type) {
	case *Object, *Array, *Map, *Set, *ErrorValue, *Date, *RegExp, *URL, *Buffer, *Boxed,
		*Blob, *File, *Headers, *FormData, *RequestValue, *ResponseValue:
		if reflect.ValueOf(v).IsNil() {
			e.put("null")
			return nil
		}
		if first, again := e.seen[v]; again {
			e.tagString("@ref", first.pointer())
			return nil
		}
		e.seen[v] = at
		return e.shared(v, at)
	}
	if e.loose {
		return e.goValue(v, reflect.ValueOf(v), at)
	}
	return fail(at, "%T is no type of the codec", v)
}

// isTooLong tells that v is a BigInt of more than MaxBigIntBits.
func isTooLong(v any) bool {
	i, ok := v.(*big.Int)
	return ok && i != nil && i.BitLen() > MaxBigIntBits
}

// primitive writes v if it is a primitive.
func (e *encoder) primitive(v any) bool {
	switch v := v.(type) {
	case nil:
		e.put("null")
	case bool:
		e.dst = strconv.AppendBool(e.dst, v)
	case string:
		e.dst = appendString(e.dst, v)
	case float64:
		e.number(v, 64)
	case Undefined:
		e.put(string(UndefinedValue))
	case Handle:
		e.handle(v)
	case UTF16:
		e.utf16(v)
	case *big.Int:
		if v == nil {
			e.put("null")
		} else {
			e.tagString("@bigint", v.String())
		}
	default:
		return false
	}
	return true
}

// number writes f in the shortest form that reads back the same with that many bits.
func (e *encoder) number(f float64, bits int) {
	switch {
	case math.IsNaN(f):
		e.tagString("@number", "NaN")
	case math.IsInf(f, 1):
		e.tagString("@number", "Infinity")
	case math.IsInf(f, -1):
		e.tagString("@number", "-Infinity")
	case f == 0 && math.Signbit(f):
		e.tagString("@number", "-0")
	case math.Abs(f) >= 1e-6 && math.Abs(f) < 1e21 || f == 0:
		e.dst = strconv.AppendFloat(e.dst, f, 'f', -1, bits)
	default:
		e.dst = strconv.AppendFloat(e.dst, f, 'e', -1, bits)
	}
}

func (e *encoder) utf16(u UTF16) {
	if s, ok := u.text(); ok {
		e.dst = appendString(e.dst, s)
		return
	}
	data := make([]byte, 0, 2*len(u))
	for _, unit := range u {
		data = binary.LittleEndian.AppendUint16(data, unit)
	}
	e.tagBase64("@utf16", data)
}

// shared writes a value that has an identity, the first time that it comes.
func (e *encoder) shared(v any, at *spot) error {
	switch v := v.(type) {
	case *Object:
		return e.object(v.Members, at)
	case *Array:
		return e.array(v.Items, at)
	case *Map:
		return e.mapValue(v, at)
	case *Set:
		e.tag("@set")
		err := e.array(v.Items, at.then("@set"))
		e.put("}")
		return err
	case *ErrorValue:
		return e.errorValue(v, at)
	case *Date:
		return e.date(v, at)
	case *RegExp:
		if !validFlags(v.Flags) {
			return fail(at, "no RegExp can have the flags %.80q", v.Flags)
		}
		e.tag("@regexp")
		e.put("[")
		e.wtf8(v.Source)
		e.put(",")
		e.wtf8(v.Flags)
		e.put("]}")
	case *URL:
		e.tagString("@url", v.Href)
	case *Buffer:
		return e.buffer(v, at)
	case *Boxed:
		if !isBoxable(v.Value) || isTooLong(v.Value) {
			return fail(at, "%T has no object form", v.Value)
		}
		e.put(`{"@boxed":[`)
		e.primitive(v.Value)
		e.put("]}")
	default:
		return e.web(v, at)
	}
	return nil
}

func (e *encoder) object(members []Member, at *spot) error {
	if len(members) == 1 && strings.HasPrefix(members[0].Key, "@") {
		e.tag("@object")
		defer e.put("}")
		at = at.then("@object")
	}
	return e.members(members, at, "")
}

// members writes an object whose first members stand in head already.
func (e *encoder) members(members []Member, at *spot, head string) error {
	if err := e.deeper(1); err != nil {
		return err
	}
	if key, ok := twice(members); ok {
		return fail(at, "key %.80q comes twice", key)
	}
	e.put("{" + head)
	for i, m := range members {
		e.comma(i + len(head))
		e.wtf8(m.Key)
		e.put(":")
		if err := e.value(m.Value, at.then(m.Key)); err != nil {
			return err
		}
	}
	e.put("}")
	e.shallower(1)
	return nil
}

// twice finds a key that two members have.
func twice(members []Member) (key string, ok bool) {
	const few = 16
	if len(members) <= few {
		for i, m := range members {
			if slices.ContainsFunc(members[:i], func(other Member) bool { return other.Key == m.Key }) {
				return m.Key, true
			}
		}
		return "", false
	}
	keys := make(map[string]struct{}, len(members))
	for _, m := range members {
		if _, ok := keys[m.Key]; ok {
			return m.Key, true
		}
		keys[m.Key] = struct{}{}
	}
	return "", false
}

func (e *encoder) array(items []any, at *spot) error {
	if err := e.deeper(1); err != nil {
		return err
	}
	e.put("[")
	length := int64(0)
	for i, item := range items {
		e.comma(i)
		if length += width(item); length > maxArrayLength || width(item) < 1 {
			return fail(at, "an array cannot be that long, nor a hole be empty")
		}
		if h, ok := item.(Hole); ok {
			e.put(`{"@hole":` + strconv.Itoa(int(h)) + `}`)
			continue
		}
		if err := e.value(item, at.item(i)); err != nil {
			return err
		}
	}
	e.put("]")
	e.shallower(1)
	return nil
}

func (e *encoder) mapValue(m *Map, at *spot) error {
	at = at.then("@map")
	if err := e.deeper(3); err != nil {
		return err
	}
	e.put(`{"@map":[`)
	for i, entry := range m.Entries {
		pair := at.item(i)
		e.comma(i)
		e.put("[")
		if err := e.value(entry.Key, pair.item(0)); err != nil {
			return err
		}
		e.put(",")
		if err := e.value(entry.Value, pair.item(1)); err != nil {
			return err
		}
		e.put("]")
	}
	e.put("]}")
	e.shallower(3)
	return nil
}

func (e *encoder) errorValue(v *ErrorValue, at *spot) error {
	at = at.then("@error")
	for _, m := range v.Props {
		if v.field(m.Key) != nil {
			return fail(at, "an error has its %s as a field", m.Key)
		}
	}
	if err := e.deeper(1); err != nil {
		return err
	}
	head := appendWTF8([]byte(`"name":`), v.Name)
	head = appendWTF8(append(head, `,"message":`...), v.Message)
	if v.Stack != "" {
		head = appendWTF8(append(head, `,"stack":`...), v.Stack)
	}
	e.tag("@error")
	err := e.members(v.Props, at, string(head))
	e.put("}")
	e.shallower(1)
	return err
}

func (e *encoder) date(d *Date, at *spot) error {
	switch {
	case math.IsNaN(d.Ms):
		e.put(`{"@date":null}`)
	case d.Ms != math.Trunc(d.Ms) || math.Abs(d.Ms) > maxDateMs:
		return fail(at, "a Date has whole milliseconds of at most 8.64e15, not %v", d.Ms)
	default:
		e.dst = strconv.AppendInt(append(e.dst, `{"@date":`...), int64(d.Ms), 10)
		e.put("}")
	}
	return nil
}

func (e *encoder) buffer(b *Buffer, at *spot) error {
	size := elementBytes[b.Kind]
	switch {
	case size == 0:
		return fail(at, "%.80q is no kind of buffer", b.Kind)
	case len(b.Data)%size != 0:
		return fail(at, "%d bytes are no whole elements of %s", len(b.Data), b.Kind)
	case b.Kind == "Uint8Array":
		e.tagBase64("@bytes", b.Data)
		return nil
	}
	e.put(`{"@buffer":["` + b.Kind + `",`)
	e.base64(b.Data)
	e.put("]}")
	return nil
}
