package protocol

import "reflect"

// adder is a http.Header, url.Values or the like.
type adder interface{ Add(name, value string) }

// headersInto stores headers in what has their Add, in a map of lists, or in a map of strings, where values of one name
// are joined.
func (u *unmarshaler) headersInto(n int32, list []Header, dst reflect.Value) error {
	if dst.Kind() != reflect.Map || dst.Type().Key().Kind() != reflect.String {
		return u.mismatch(n, dst)
	}
	add, ok := addTo(dst)
	if !ok {
		return u.mismatch(n, dst)
	}
	for _, h := range list {
		add(h.Name, h.Value)
	}
	return nil
}

// formInto stores a form without files as headersInto does, but not in a map of strings.
func (u *unmarshaler) formInto(n, body int32, dst reflect.Value) error {
	f := &FormData{}
	if err := u.form(n, body, f, u.plainValue); err != nil {
		return err
	}
	list := make([]Header, len(f.Entries))
	for i, entry := range f.Entries {
		text, ok := entry.Value.(string)
		if !ok {
			return u.mismatch(n, dst)
		}
		list[i] = Header{entry.Name, text}
	}
	if dst.Kind() == reflect.Map && dst.Type().Elem().Kind() == reflect.String {
		return u.mismatch(n, dst)
	}
	return u.headersInto(n, list, dst)
}

// addTo returns how to add to a map whose keys are strings, made if nil; ok is false when its values are of no use.
func addTo(dst reflect.Value) (add func(name, value string), ok bool) {
	if dst.IsNil() {
		dst.Set(reflect.MakeMap(dst.Type()))
	}
	if a, ok := dst.Interface().(adder); ok {
		return a.Add, true
	}
	elem := dst.Type().Elem()
	put := func(name string, change func(v reflect.Value)) {
		key, v := reflect.ValueOf(name).Convert(dst.Type().Key()), reflect.New(elem).Elem()
		if old := dst.MapIndex(key); old.IsValid() {
			v.Set(old)
		}
		change(v)
		dst.SetMapIndex(key, v)
	}
	switch {
	case elem.Kind() == reflect.String:
		return func(name, value string) {
			put(name, func(v reflect.Value) {
				if v.String() != "" {
					value = v.String() + ", " + value
				}
				v.SetString(value)
			})
		}, true
	case elem.Kind() == reflect.Slice && elem.Elem().Kind() == reflect.String:
		return func(name, value string) {
			put(name, func(v reflect.Value) { v.Set(reflect.Append(v, reflect.ValueOf(value).Convert(elem.Elem()))) })
		}, true
	}
	return nil, false
}
