package protocol

import "strconv"

// web writes a value of this file.
func (e *encoder) web(v any, at *spot) error {
	switch v := v.(type) {
	case *Blob:
		e.put(`{"@blob":{"type":`)
		e.wtf8(v.Type)
		e.put(`,"data":`)
		e.tagBase64("@bytes", v.Data)
		e.put("}}")
	case *File:
		e.put(`{"@file":{"name":`)
		e.wtf8(v.Name)
		e.put(`,"type":`)
		e.wtf8(v.Type)
		e.put(`,"lastModified":` + strconv.FormatInt(v.LastModified, 10) + `,"data":`)
		e.tagBase64("@bytes", v.Data)
		e.put("}}")
	case *Headers:
		e.put(`{"@headers":`)
		defer e.put("}")
		return e.headers(v.List, at)
	case *FormData:
		return e.form(v, at)
	case *RequestValue:
		return e.request(v, at)
	case *ResponseValue:
		return e.response(v, at)
	}
	return nil
}

func (e *encoder) headers(list []Header, at *spot) error {
	if !areHeaders(list) {
		return fail(at, "a header has no token for a name, or a value that is not one of bytes")
	}
	e.dst = appendHeaders(e.dst, list)
	return nil
}

func (e *encoder) body(data []byte) {
	e.put(`,"body":`)
	if data == nil {
		e.put("null")
		return
	}
	e.tagBase64("@bytes", data)
}

func (e *encoder) form(f *FormData, at *spot) error {
	at = at.then("@formdata")
	if err := e.deeper(3); err != nil {
		return err
	}
	e.put(`{"@formdata":[`)
	for i, entry := range f.Entries {
		if !isFormValue(entry.Value) {
			return fail(at, "%T is no value of a FormData", entry.Value)
		}
		e.comma(i)
		e.put("[")
		e.wtf8(entry.Name)
		e.put(",")
		if err := e.value(entry.Value, at.item(i).item(1)); err != nil {
			return err
		}
		e.put("]")
	}
	e.put("]}")
	e.shallower(3)
	return nil
}

func (e *encoder) request(r *RequestValue, at *spot) error {
	if !isMethod(r.Method) {
		return fail(at, "no Request can have the method %.80q", r.Method)
	}
	e.put(`{"@request":{"method":`)
	e.wtf8(r.Method)
	e.put(`,"url":`)
	e.wtf8(r.URL)
	e.put(`,"headers":`)
	if err := e.headers(r.Headers, at); err != nil {
		return err
	}
	e.body(r.Body)
	for _, o := range r.options() {
		if *o.into != "" {
			e.put(`,"` + o.name + `":`)
			e.wtf8(*o.into)
		}
	}
	if r.Keepalive {
		e.put(`,"keepalive":true`)
	}
	e.put("}}")
	return nil
}

func (e *encoder) response(r *ResponseValue, at *spot) error {
	if !isStatus(r.Status, r.Type) {
		return fail(at, "no Response can have the status %d", r.Status)
	}
	e.put(`{"@response":{"status":` + strconv.Itoa(r.Status) + `,"statusText":`)
	e.wtf8(r.StatusText)
	e.put(`,"url":`)
	e.wtf8(r.URL)
	e.put(`,"headers":`)
	if err := e.headers(r.Headers, at); err != nil {
		return err
	}
	e.body(r.Body)
	if r.Type != "" {
		e.put(`,"type":`)
		e.wtf8(r.Type)
	}
	if r.Redirected {
		e.put(`,"redirected":true`)
	}
	e.put("}}")
	return nil
}
