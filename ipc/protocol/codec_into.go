package protocol

import (
	"encoding"
	"math/big"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// tagInto decodes a tag other than those of null and references.
func (u *unmarshaler) tagInto(n int32, tag string, body int32, dst reflect.Value) error {
	switch tag {
	case "@object":
		if u.nodes[body].kind != '{' {
			return u.fault(n, "@object is an object")
		}
		return u.object(body, dst)
	case "@set":
		if !u.isArray(body, -1) {
			return u.fault(n, "@set is an array")
		}
		return u.list(n, body, dst)
	case "@map":
		return u.goMap(n, body, dst)
	case "@formdata":
		return u.formInto(n, body, dst)
	}
	v, err := u.leaf(n, tag, body)
	if err != nil {
		return err
	}
	return u.leafInto(n, v, dst)
}

// leafInto stores what a tag without Values in it says.
func (u *unmarshaler) leafInto(n int32, v any, dst reflect.Value) error {
	switch v := v.(type) {
	case bool:
		if dst.Kind() == reflect.Bool {
			dst.SetBool(v)
			return nil
		}
	case string:
		return u.stringInto(n, v, dst)
	case UTF16:
		return u.stringInto(n, v.String(), dst)
	case float64:
		if dst.CanFloat() {
			return u.float(n, v, dst)
		}
		return u.integer(n, strconv.FormatFloat(v, 'f', -1, 64), dst)
	case *Boxed:
		return u.leafInto(n, v.Value, dst)
	case *big.Int:
		if dst.Type() == bigType {
			dst.Set(reflect.ValueOf(*v))
			return nil
		}
		return u.integer(n, v.String(), dst)
	case *Date:
		if dst.Type() == timeType {
			dst.Set(reflect.ValueOf(v.Time()))
			return nil
		}
	case *URL:
		return u.urlInto(n, textKey(v.Href), dst)
	case *Buffer:
		return u.bytesInto(n, v.Data, dst)
	case *Blob:
		return u.bytesInto(n, v.Data, dst)
	case *File:
		return u.bytesInto(n, v.Data, dst)
	case *Headers:
		return u.headersInto(n, v.List, dst)
	}
	return u.mismatch(n, dst)
}

func (u *unmarshaler) urlInto(n int32, href string, dst reflect.Value) error {
	if dst.Type() != urlType {
		return u.stringInto(n, href, dst)
	}
	parsed, err := url.Parse(href)
	if err != nil {
		return u.fault(n, err.Error())
	}
	dst.Set(reflect.ValueOf(*parsed))
	return nil
}

// bytesInto stores bytes in a slice, or in an array of just that length.
func (u *unmarshaler) bytesInto(n int32, data []byte, dst reflect.Value) error {
	switch {
	case dst.Kind() == reflect.Slice && dst.Type().Elem().Kind() == reflect.Uint8:
		dst.SetBytes(data)
	case dst.Kind() == reflect.Array && dst.Type().Elem().Kind() == reflect.Uint8 && dst.Len() == len(data):
		for i, b := range data {
			dst.Index(i).SetUint(uint64(b))
		}
	default:
		return u.mismatch(n, dst)
	}
	return nil
}

// list decodes the items of the array at body, which is the value at n or the body of that @set.
func (u *unmarshaler) list(n, body int32, dst reflect.Value) error {
	switch dst.Kind() {
	case reflect.Slice:
		list := reflect.MakeSlice(dst.Type(), 0, int(u.nodes[body].size))
		zero := reflect.Zero(dst.Type().Elem())
		err := u.elements(n, body, func(item int32, hole bool) error {
			if list = reflect.Append(list, zero); hole {
				return nil
			}
			return u.into(item, list.Index(list.Len()-1))
		})
		dst.Set(list)
		return err
	case reflect.Array: // as encoding/json: what is too much is passed over, what is too little is zero
		i := 0
		dst.SetZero()
		return u.elements(n, body, func(item int32, hole bool) error {
			if i++; hole || i > dst.Len() {
				return nil
			}
			return u.into(item, dst.Index(i-1))
		})
	}
	return u.mismatch(n, dst)
}

// elements calls visit with each item of the array at body, and for each single hole when it is the value at n itself.
func (u *unmarshaler) elements(n, body int32, visit func(item int32, hole bool) error) error {
	return u.items(body, func(item int32) error {
		tag, inside := u.tag(item)
		if tag != "@hole" || n != body {
			return visit(item, false)
		}
		holes, err := u.hole(item, inside)
		if err == nil {
			err = u.spend(item, int64(holes))
		}
		for i := Hole(0); i < holes && err == nil; i++ {
			err = visit(item, true)
		}
		return err
	})
}

// object decodes the object at n into a struct or map.
func (u *unmarshaler) object(n int32, dst reflect.Value) error {
	switch dst.Kind() {
	case reflect.Struct:
		fields := fieldsOf(dst.Type())
		return u.members(n, func(key string, v int32) error {
			f := matching(fields, textKey(key))
			if f == nil {
				return nil
			}
			return u.field(v, *f, dst)
		})
	case reflect.Map:
		if dst.IsNil() {
			dst.Set(reflect.MakeMap(dst.Type()))
		}
		return u.members(n, func(key string, v int32) error {
			k := reflect.New(dst.Type().Key()).Elem()
			if err := u.keyText(n, textKey(key), k); err != nil {
				return err
			}
			return u.entry(k, v, dst)
		})
	}
	return u.mismatch(n, dst)
}

// matching finds the field for a key, in another case if need be, as encoding/json does.
func matching(fields []structField, key string) *structField {
	for i := range fields {
		if fields[i].name == key {
			return &fields[i]
		}
	}
	for i := range fields {
		if strings.EqualFold(fields[i].name, key) {
			return &fields[i]
		}
	}
	return nil
}

// field decodes the value at n into a field of dst, making the embedded structs on the way.
func (u *unmarshaler) field(n int32, f structField, dst reflect.Value) error {
	for i, index := range f.index {
		if i > 0 && dst.Kind() == reflect.Pointer {
			if dst.IsNil() {
				if !dst.CanSet() {
					return u.fault(n, "cannot set an embedded pointer to unexported "+dst.Type().Elem().String())
				}
				dst.Set(reflect.New(dst.Type().Elem()))
			}
			dst = dst.Elem()
		}
		dst = dst.Field(index)
	}
	if !f.quoted || u.nodes[n].kind == 'n' {
		return u.into(n, dst)
	}
	if !u.isString(n) {
		return u.mismatch(n, dst)
	}
	inner, err := parseTree([]byte(u.key(n)), ValueBounds)
	if err != nil {
		return u.fault(n, err.Error())
	}
	quoted := unmarshaler{tree: inner, left: 1}
	return quoted.into(0, dst)
}

// keyText stores the text of a key.
func (u *unmarshaler) keyText(n int32, key string, k reflect.Value) error {
	if t, ok := k.Addr().Interface().(encoding.TextUnmarshaler); ok && k.Kind() != reflect.String {
		return t.UnmarshalText([]byte(key))
	}
	if k.Kind() == reflect.String {
		k.SetString(key)
		return nil
	}
	if k.Kind() == reflect.Interface && k.NumMethod() == 0 {
		k.Set(reflect.ValueOf(key))
		return nil
	}
	return u.integer(n, key, k)
}

// entry decodes the value at n and puts it under the key k of the map dst.
func (u *unmarshaler) entry(k reflect.Value, n int32, dst reflect.Value) error {
	v := reflect.New(dst.Type().Elem()).Elem()
	if err := u.into(n, v); err != nil {
		return err
	}
	if !k.Comparable() {
		return u.fault(n, "its key cannot be the key of a Go map")
	}
	dst.SetMapIndex(k, v)
	return nil
}

// goMap decodes the @map at n into a Go map.
func (u *unmarshaler) goMap(n, body int32, dst reflect.Value) error {
	if dst.Kind() != reflect.Map {
		return u.mismatch(n, dst)
	}
	if dst.IsNil() {
		dst.Set(reflect.MakeMap(dst.Type()))
	}
	return u.pairs(n, body, func(k, v int32) error {
		key := reflect.New(dst.Type().Key()).Elem()
		if err := u.into(k, key); err != nil {
			return err
		}
		return u.entry(key, v, dst)
	})
}
