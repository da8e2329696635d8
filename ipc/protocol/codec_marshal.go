package protocol

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// Marshal encodes an ordinary Go value within ValueBounds, as a program in JavaScript would want it:
//
//   - the types of this codec as Encode does; a Value is checked and put in as it is, a nil one is undefined; what has a
//     method Handle() Handle as that;
//   - booleans, strings, numbers, structs with json tags, maps with sorted keys, slices, pointers, interfaces,
//     json.Marshaler and encoding.TextMarshaler as encoding/json does, but a nil slice is an empty array and a nil map
//     an empty object;
//   - []byte and arrays of bytes as Uint8Array, time.Time as Date, *big.Int as BigInt, *url.URL as URL, NaN, infinities
//     and -0 as those numbers, an error as an Error.
//
// An integer that float64 cannot hold is an error, for the program would see another one: use *big.Int. So is a cycle
// through anything but the types of this codec. The error is a *ValueError, a *TextError for a bad Value, or that of a
// Marshaler.
func Marshal(v any) (Value, error) {
	e := encoder{seen: map[any]*spot{}, loose: true}
	if err := e.value(v, nil); err != nil {
		return nil, err
	}
	return e.done()
}

// maxSafeInteger is the largest integer up to which float64 holds every one.
const maxSafeInteger = 1<<53 - 1

// goField is a part of an ordinary Go value. It keeps what an interface would lose: that it is addressable.
type goField struct{ reflect.Value }

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// field writes a part of an ordinary Go value. Methods of its pointer count when it is addressable.
func (e *encoder) field(v reflect.Value, at *spot) error {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() {
		return e.value(nil, at)
	}
	if v.CanAddr() {
		t, p := v.Type(), reflect.PointerTo(v.Type())
		if p.Implements(jsonMarshaler) && !t.Implements(jsonMarshaler) ||
			p.Implements(textMarshaler) && !t.Implements(textMarshaler) {
			return e.value(v.Addr().Interface(), at)
		}
	}
	if k := v.Kind(); exactTypes[v.Type()] || k != reflect.Struct && k != reflect.Array {
		return e.value(v.Interface(), at)
	}
	if err := e.count(); err != nil {
		return err
	}
	return e.goValue(v.Interface(), v, at)
}

// goValue writes an ordinary Go value: v, of which rv is the reflection.
func (e *encoder) goValue(v any, rv reflect.Value, at *spot) error {
	if f, ok := v.(goField); ok {
		return e.field(f.Value, at)
	}
	if rv.Kind() == reflect.Pointer && rv.IsNil() {
		e.put("null")
		return nil
	}
	if exactTypes[rv.Type()] { // by value: it has no identity
		p := reflect.New(rv.Type())
		p.Elem().Set(rv)
		return e.value(p.Interface(), at)
	}
	switch v := v.(type) {
	case Value:
		return e.paste(v, at)
	case time.Time:
		return e.date(&Date{float64(v.UnixMilli())}, at)
	case big.Int:
		return e.value(&v, at)
	case url.URL:
		e.tagString("@url", v.String())
	case *time.Time, *url.URL:
		return e.goValue(rv.Elem().Interface(), rv.Elem(), at)
	case interface{ Handle() Handle }:
		e.handle(v.Handle())
	case *ThrownError:
		return e.thrown(v, at)
	case error:
		return e.value(&ErrorValue{Name: "Error", Message: v.Error()}, at)
	case json.Marshaler:
		text, err := v.MarshalJSON()
		if err != nil {
			return err
		}
		return e.plain(text, at)
	case encoding.TextMarshaler:
		text, err := v.MarshalText()
		e.dst = appendString(e.dst, string(text))
		return err
	default:
		return e.kind(rv, at)
	}
	return nil
}

func (e *encoder) thrown(t *ThrownError, at *spot) error {
	v := &ErrorValue{Name: cmp.Or(t.Name, "Error"), Message: t.Message}
	if t.Code != "" {
		v.Props = []Member{{"code", t.Code}}
	}
	return e.value(v, at)
}

// kind writes a value by its kind.
func (e *encoder) kind(v reflect.Value, at *spot) error {
	switch v.Kind() {
	case reflect.Bool, reflect.String:
		return e.scalar(v)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if i := v.Int(); i > maxSafeInteger || i < -maxSafeInteger {
			return fail(at, "%d is too large for a number; use *big.Int", i)
		}
		e.dst = strconv.AppendInt(e.dst, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if v.Uint() > maxSafeInteger {
			return fail(at, "%d is too large for a number; use *big.Int", v.Uint())
		}
		e.dst = strconv.AppendUint(e.dst, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		e.number(v.Float(), v.Type().Bits())
	case reflect.Pointer, reflect.Interface:
		return e.indirect(v, at)
	case reflect.Struct:
		return e.structValue(v, at)
	case reflect.Map:
		return e.goMap(v, at)
	case reflect.Slice, reflect.Array:
		return e.list(v, at)
	default:
		return fail(at, "Go type %s has no value in JavaScript", v.Type())
	}
	return nil
}

// scalar writes a boolean or a string. A json.Number is its number.
func (e *encoder) scalar(v reflect.Value) error {
	if v.Kind() == reflect.Bool {
		e.dst = strconv.AppendBool(e.dst, v.Bool())
		return nil
	}
	if v.Type() == reflect.TypeFor[json.Number]() {
		n := cmp.Or(v.String(), "0")
		if err := Check([]byte(n), ValueBounds); err != nil || n[0] != '-' && n[0]-'0' > 9 {
			return fail(nil, "json.Number %.80q is no number", n)
		}
		e.put(n)
		return nil
	}
	e.dst = appendString(e.dst, v.String())
	return nil
}

func (e *encoder) indirect(v reflect.Value, at *spot) error {
	if v.IsNil() {
		e.put("null")
		return nil
	}
	if err := e.deeper(1); err != nil { // a pointer may lead to itself
		return err
	}
	defer e.shallower(1)
	return e.field(v.Elem(), at)
}

func (e *encoder) list(v reflect.Value, at *spot) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		data := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(data), bytesOf(v))
		e.tagBase64("@bytes", data)
		return nil
	}
	if err := e.deeper(1); err != nil {
		return err
	}
	e.put("[")
	for i := range v.Len() {
		e.comma(i)
		if err := e.field(v.Index(i), at.item(i)); err != nil {
			return err
		}
	}
	e.put("]")
	e.shallower(1)
	return nil
}

// bytesOf returns a slice or array whose elements have kind uint8 as one of bytes.
func bytesOf(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Slice {
		return v.Convert(reflect.TypeFor[[]byte]())
	}
	data := make([]byte, v.Len())
	for i := range data {
		data[i] = byte(v.Index(i).Uint())
	}
	return reflect.ValueOf(data)
}

func (e *encoder) goMap(v reflect.Value, at *spot) error {
	members := make([]Member, 0, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		key, err := mapKey(iter.Key())
		if err != nil {
			return fail(at, "%s", err)
		}
		members = append(members, Member{key, goField{iter.Value()}})
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Key, b.Key) })
	return e.object(members, at)
}

// mapKey is the key of a Go map as text, as encoding/json has it.
func mapKey(k reflect.Value) (string, error) {
	if k.Kind() == reflect.String {
		return k.String(), nil
	}
	if m, ok := k.Interface().(encoding.TextMarshaler); ok {
		if k.Kind() == reflect.Pointer && k.IsNil() {
			return "", nil
		}
		text, err := m.MarshalText()
		return string(text), err
	}
	switch {
	case k.CanInt():
		return strconv.FormatInt(k.Int(), 10), nil
	case k.CanUint():
		return strconv.FormatUint(k.Uint(), 10), nil
	}
	return "", fmt.Errorf("keys of Go type %s have no text", k.Type())
}

func (e *encoder) structValue(v reflect.Value, at *spot) error {
	var members []Member
	for _, f := range fieldsOf(v.Type()) {
		fv, err := v.FieldByIndexErr(f.index)
		if err != nil || f.omitEmpty && isEmpty(fv) || f.omitZero && isZero(fv) {
			continue // an embedded pointer that is nil has no fields
		}
		var value any = goField{fv}
		if f.quoted {
			if value, err = quoted(fv); err != nil {
				return err
			}
		}
		members = append(members, Member{f.name, value})
	}
	return e.object(members, at)
}

// quoted is the value of a field with the option "string".
func quoted(v reflect.Value) (any, error) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, nil
		}
		v = v.Elem()
	}
	text, err := json.Marshal(v.Interface())
	return string(text), err
}

// isEmpty is the rule of encoding/json for omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// isZero is the rule of encoding/json for omitzero.
func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		return z.IsZero()
	}
	return v.IsZero()
}

// paste puts in a Value. Its references are counted from its own root, so one that has any is decoded and encoded anew
// where it now stands.
func (e *encoder) paste(v Value, at *spot) error {
	if v == nil {
		e.put(string(UndefinedValue))
		return nil
	}
	if at != nil && (bytes.Contains(v, []byte("@ref")) || bytes.Contains(v, []byte(`\u`))) {
		graph, err := Decode(v, ValueBounds)
		if err != nil {
			return err
		}
		return e.value(graph, at)
	}
	if err := Check(v, ValueBounds); err != nil {
		return err
	}
	e.dst = append(e.dst, trimSpace(v)...)
	return nil
}

// plain puts in JSON text that knows nothing of tags.
func (e *encoder) plain(text []byte, at *spot) error {
	t, err := parseTree(text, ValueBounds)
	if err != nil {
		return fail(at, "MarshalJSON: %s", err)
	}
	e.plainNode(t, 0)
	return nil
}

// plainNode copies the node n and wraps each object that would be read as a tag.
func (e *encoder) plainNode(t *tree, n int32) {
	tag, _ := t.tag(n)
	switch kind := t.nodes[n].kind; {
	case kind == '[':
		e.put("[")
		i := 0
		_ = t.items(n, func(item int32) error {
			e.comma(i)
			i++
			e.plainNode(t, item)
			return nil
		})
		e.put("]")
	case kind == '{':
		if tag != "" {
			e.tag("@object")
			defer e.put("}")
		}
		e.put("{")
		for k := n + 1; k < t.nodes[n].next; k = t.nodes[k+1].next {
			e.comma(int(k - n - 1))
			e.dst = append(append(e.dst, t.raw(k)...), ':')
			e.plainNode(t, k+1)
		}
		e.put("}")
	default:
		e.dst = append(e.dst, t.raw(n)...)
	}
}
