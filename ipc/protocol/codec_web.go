package protocol

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The values of the web's interfaces: what a structured clone copies of a Blob, and what the Fetch Standard's objects
// consist of. Bytes in their tags are written as {"@bytes":base64}, but have no identity there.

// Blob is a Blob (File API): its MIME type, in lower case or empty, and its bytes.
type Blob struct {
	Type string
	Data []byte
}

// File is a File (File API). LastModified is in milliseconds since 1970 UTC.
type File struct {
	Name, Type   string
	LastModified int64
	Data         []byte
}

// Headers is a Headers object (Fetch, 5.1). The sandbox lists it as a program sees it: names in lower case and sorted,
// values of one name joined, but each Set-Cookie by itself.
type Headers struct{ List []Header }

// FormData is a FormData (XMLHttpRequest, 4) in its order.
type FormData struct{ Entries []FormEntry }

// FormEntry is one entry of a FormData. Value is a string or a *File.
type FormEntry struct {
	Name  string
	Value any
}

// RequestValue is a Request (Fetch, 5.4). Body is nil for none. The options are empty, or false, where they are what a
// Request has unless told otherwise; Referrer is "no-referrer" or empty. Its signal does not cross.
type RequestValue struct {
	Method, URL string
	Headers     []Header
	Body        []byte

	Mode, Credentials, Cache, Redirect, Referrer, ReferrerPolicy, Integrity string

	Keepalive bool
}

// ResponseValue is a Response (Fetch, 5.5). Body is nil for none. Type is empty for "default".
type ResponseValue struct {
	Status          int
	StatusText, URL string
	Headers         []Header
	Body            []byte
	Type            string
	Redirected      bool
}

// options are the optional members of the tag, in their order.
func (r *RequestValue) options() []textField {
	return []textField{
		{"mode", &r.Mode},
		{"credentials", &r.Credentials},
		{"cache", &r.Cache},
		{"redirect", &r.Redirect},
		{"referrer", &r.Referrer},
		{"referrerPolicy", &r.ReferrerPolicy},
		{"integrity", &r.Integrity},
	}
}

// textField is a member of a tag that is a string.
type textField struct {
	name string
	into *string
}

// isMethod tells that a Request can have this method.
func isMethod(method string) bool {
	return isToken(method) && !forbiddenMethods[strings.ToUpper(method)]
}

// isStatus tells that a Response can have this status: only an error has none.
func isStatus(status int, typ string) bool {
	return status >= 200 && status <= 599 || status == 0 && typ == "error"
}

func areHeaders(list []Header) bool {
	return !slices.ContainsFunc(list, func(h Header) bool { return !isToken(h.Name) || !isHeaderValue(h.Value) })
}

// web decodes a tag of this file but @formdata, whose Files are values of their own.
func (t *tree) web(n int32, tag string, body int32) (any, error) {
	switch tag {
	case "@blob":
		b := &Blob{}
		return b, t.fields(n, tag, body, []string{"type", "data"}, func(name string, v int32) error {
			switch name {
			case "type":
				return t.textAt(v, &b.Type)
			case "data":
				return t.bytesAt(v, &b.Data)
			}
			return t.unknown(v)
		})
	case "@file":
		return t.file(n, tag, body)
	case "@headers":
		h := &Headers{}
		return h, t.headersAt(body, &h.List)
	case "@request":
		return t.request(n, tag, body)
	case "@response":
		return t.response(n, tag, body)
	}
	return nil, t.fault(n, fmt.Sprintf("unknown tag %.80q", tag))
}

// fields calls visit with each member of the object at body, all of required among them.
func (t *tree) fields(n int32, tag string, body int32, required []string, visit func(name string, v int32) error) error {
	if t.nodes[body].kind != '{' {
		return t.fault(n, tag+" is an object")
	}
	missing := slices.Clone(required)
	err := t.members(body, func(name string, v int32) error {
		missing = slices.DeleteFunc(missing, func(r string) bool { return r == name })
		return visit(name, v)
	})
	if err == nil && len(missing) > 0 {
		err = t.fault(body, "lacks "+missing[0])
	}
	return err
}

func (t *tree) unknown(v int32) error { return t.fault(v, "is no member of the tag") }

func (t *tree) textAt(v int32, into *string) error {
	if !t.isString(v) {
		return t.fault(v, "must be a string")
	}
	*into = t.key(v)
	return nil
}

func (t *tree) flagAt(v int32, into *bool) error {
	if k := t.nodes[v].kind; k != 't' && k != 'f' {
		return t.fault(v, "must be true or false")
	}
	*into = t.nodes[v].kind == 't'
	return nil
}

func (t *tree) wholeAt(v int32, into *int64) error {
	f, err := strconv.ParseFloat(string(t.raw(v)), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafeInteger {
		return t.fault(v, "must be a whole number")
	}
	*into = int64(f)
	return nil
}

// bytesAt reads {"@bytes":base64}, whose slice is never nil.
func (t *tree) bytesAt(v int32, into *[]byte) error {
	if tag, body := t.tag(v); tag == "@bytes" {
		if data, ok := t.base64(body); ok {
			*into = data
			return nil
		}
	}
	return t.fault(v, "must be @bytes")
}

func (t *tree) bodyAt(v int32, into *[]byte) error {
	if t.nodes[v].kind == 'n' {
		return nil
	}
	return t.bytesAt(v, into)
}

func (t *tree) headersAt(v int32, into *[]Header) error {
	if !t.isArray(v, -1) {
		return t.fault(v, "must be an array of names and values")
	}
	return t.items(v, func(pair int32) error {
		if !t.isArray(pair, 2) || !t.isString(pair+1) || !t.isString(t.nodes[pair+1].next) {
			return t.fault(pair, "must be a name and a value")
		}
		h := Header{t.key(pair + 1), t.key(t.nodes[pair+1].next)}
		if !areHeaders([]Header{h}) {
			return t.fault(pair, "is no header")
		}
		*into = append(*into, h)
		return nil
	})
}

func (t *tree) file(n int32, tag string, body int32) (*File, error) {
	f := &File{}
	return f, t.fields(n, tag, body, []string{"name", "type", "lastModified", "data"}, func(name string, v int32) error {
		switch name {
		case "name":
			return t.textAt(v, &f.Name)
		case "type":
			return t.textAt(v, &f.Type)
		case "lastModified":
			return t.wholeAt(v, &f.LastModified)
		case "data":
			return t.bytesAt(v, &f.Data)
		}
		return t.unknown(v)
	})
}

func (t *tree) request(n int32, tag string, body int32) (*RequestValue, error) {
	r := &RequestValue{}
	options := r.options()
	err := t.fields(n, tag, body, []string{"method", "url", "headers", "body"}, func(name string, v int32) error {
		switch name {
		case "method":
			return t.textAt(v, &r.Method)
		case "url":
			return t.textAt(v, &r.URL)
		case "headers":
			return t.headersAt(v, &r.Headers)
		case "body":
			return t.bodyAt(v, &r.Body)
		case "keepalive":
			return t.flagAt(v, &r.Keepalive)
		}
		if i := slices.IndexFunc(options, func(o textField) bool { return o.name == name }); i >= 0 {
			return t.textAt(v, options[i].into)
		}
		return t.unknown(v)
	})
	if err == nil && !isMethod(r.Method) {
		err = t.fault(n, "@request has a method that no Request can have")
	}
	return r, err
}

func (t *tree) response(n int32, tag string, body int32) (*ResponseValue, error) {
	r := &ResponseValue{}
	status := int64(0)
	err := t.fields(n, tag, body, []string{"status", "statusText", "url", "headers", "body"}, func(name string, v int32) error {
		switch name {
		case "status":
			return t.wholeAt(v, &status)
		case "statusText":
			return t.textAt(v, &r.StatusText)
		case "url":
			return t.textAt(v, &r.URL)
		case "headers":
			return t.headersAt(v, &r.Headers)
		case "body":
			return t.bodyAt(v, &r.Body)
		case "type":
			return t.textAt(v, &r.Type)
		case "redirected":
			return t.flagAt(v, &r.Redirected)
		}
		return t.unknown(v)
	})
	if r.Status = int(status); err == nil && (int64(r.Status) != status || !isStatus(r.Status, r.Type)) {
		err = t.fault(n, "@response has a status that no Response can have")
	}
	return r, err
}

// formEntries calls visit with each name and value of the @formdata at n.
func (t *tree) formEntries(n, body int32, visit func(name string, v int32) error) error {
	const rule = "@formdata is an array of names with strings or files"
	if !t.isArray(body, -1) {
		return t.fault(n, rule)
	}
	return t.items(body, func(pair int32) error {
		if !t.isArray(pair, 2) || !t.isString(pair+1) {
			return t.fault(n, rule)
		}
		return visit(t.key(pair+1), t.nodes[pair+1].next)
	})
}

// form decodes the @formdata at n; value gives what stands at a node.
func (t *tree) form(n, body int32, f *FormData, value func(v int32) (any, error)) error {
	return t.formEntries(n, body, func(name string, v int32) error {
		if t.isString(v) {
			f.Entries = append(f.Entries, FormEntry{name, wellFormed(t.str(v))})
			return nil
		}
		item, err := value(v)
		if err != nil {
			return err
		}
		if _, ok := item.(*File); !ok {
			return t.fault(v, "must be a string or a File")
		}
		f.Entries = append(f.Entries, FormEntry{name, item})
		return nil
	})
}

func isFormValue(v any) bool {
	switch v.(type) {
	case string, *File:
		return true
	}
	return false
}
