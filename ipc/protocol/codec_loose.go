package protocol

import (
	"math"
	"strings"
	"time"
)

// plainValue decodes the value at n for a target of type any.
func (u *unmarshaler) plainValue(n int32) (any, error) {
	if err := u.enter(n); err != nil {
		return nil, err
	}
	defer u.leave()
	switch u.nodes[n].kind {
	case 'n':
		return nil, nil
	case 't', 'f':
		return u.nodes[n].kind == 't', nil
	case '"':
		return wellFormed(u.str(n)), nil
	case '[':
		return u.plainList(n)
	case '{':
		if tag, body := u.tag(n); tag != "" {
			return u.plainTag(n, tag, body)
		}
		return u.plainObject(n)
	}
	return u.number(n)
}

func (u *unmarshaler) plainList(n int32) (any, error) {
	list := make([]any, 0, u.nodes[n].size)
	err := u.elements(n, n, func(i int32, hole bool) error {
		if hole {
			list = append(list, nil)
			return nil
		}
		item, err := u.plainValue(i)
		list = append(list, item)
		return err
	})
	return list, err
}

func (u *unmarshaler) plainObject(n int32) (any, error) {
	m := make(map[string]any, u.nodes[n].size)
	return m, u.members(n, func(key string, v int32) error {
		value, err := u.plainValue(v)
		m[textKey(key)] = value
		return err
	})
}

// textKey makes a key of members valid UTF-8.
func textKey(key string) string { return strings.ToValidUTF8(key, "\uFFFD") }

func (u *unmarshaler) plainTag(n int32, tag string, body int32) (any, error) {
	switch tag {
	case "@object":
		if u.nodes[body].kind != '{' {
			return nil, u.fault(n, "@object is an object")
		}
		return u.plainObject(body)
	case "@map":
		m := &Map{}
		return m, u.pairs(n, body, func(k, v int32) (err error) {
			var e Entry
			if e.Key, err = u.plainValue(k); err == nil {
				e.Value, err = u.plainValue(v)
			}
			m.Entries = append(m.Entries, e)
			return err
		})
	case "@set":
		if !u.isArray(body, -1) {
			return nil, u.fault(n, "@set is an array")
		}
		s := &Set{}
		return s, u.items(body, func(i int32) error {
			item, err := u.plainValue(i)
			s.Items = append(s.Items, item)
			return err
		})
	case "@error":
		e := &ErrorValue{Name: "Error"}
		return e, u.errorFields(n, body, e, func(key string, v int32) error {
			value, err := u.plainValue(v)
			e.Props = append(e.Props, Member{textKey(key), value})
			return err
		})
	case "@formdata":
		f := &FormData{}
		return f, u.form(n, body, f, u.plainValue)
	case "@ref":
		target, err := u.copied(n, body)
		if err != nil {
			return nil, err
		}
		return u.plainValue(target)
	}
	v, err := u.leaf(n, tag, body)
	return natural(v), err
}

// natural turns a value of the codec into the Go type that programs use for it, where there is one.
func natural(v any) any {
	switch v := v.(type) {
	case Undefined:
		return nil
	case UTF16:
		return v.String()
	case *Date:
		return v.Time()
	case *Boxed:
		return natural(v.Value)
	case *Buffer:
		if v.Kind == "Uint8Array" {
			return v.Data
		}
	}
	return v
}

// Time is d in UTC, the zero Time when d is invalid.
func (d *Date) Time() time.Time {
	if math.IsNaN(d.Ms) {
		return time.Time{}
	}
	return time.UnixMilli(int64(d.Ms)).UTC()
}
