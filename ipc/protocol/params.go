package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// DecodeExecute reads the params of the execute call and holds them to all rules. Each fault is an *Error that names
// the field by its path, as "limits.cpuMs" or "providers[0].name"; unknown fields are refused. Execute.Input is a
// sub-slice of params.
func DecodeExecute(params json.RawMessage, b Bounds) (*Execute, error) {
	r, e := paramReader{b}, &Execute{}
	if err := r.object("", params, func(name, path string, v json.RawMessage) error {
		return r.execute(e, name, path, v)
	}); err != nil {
		return nil, err
	}
	if err := e.validate(); err != nil {
		return nil, err
	}
	return e, nil
}

// execute reads one member of the params.
func (r paramReader) execute(e *Execute, name, path string, v json.RawMessage) error {
	switch name {
	case "execution":
		return r.text(path, v, &e.Execution)
	case "code":
		return r.text(path, v, &e.Code)
	case "form":
		return r.text(path, v, (*string)(&e.Form))
	case "language":
		return r.text(path, v, (*string)(&e.Language))
	case "name":
		return r.text(path, v, &e.Name)
	case "input":
		e.Input = v
	case "providers":
		return r.array(path, v, MaxProviders, func(path string, v json.RawMessage) error {
			e.Providers = append(e.Providers, Provider{Tools: Tools{All: true}})
			return r.provider(path, v, &e.Providers[len(e.Providers)-1])
		})
	case "modules":
		return r.modules(path, v, &e.Modules)
	case "network":
		return r.text(path, v, (*string)(&e.Network))
	case "limits":
		return r.limits(path, v, &e.Limits, true)
	case "logs":
		return r.logs(path, v, &e.Logs)
	case "retain":
		return r.retain(path, v, &e.Retain)
	case "trace":
		e.Trace = &Trace{}
		return r.trace(path, v, e.Trace)
	default:
		return unknownField(path)
	}
	return nil
}

func (r paramReader) provider(path string, raw json.RawMessage, p *Provider) error {
	return r.object(path, raw, func(name, path string, v json.RawMessage) error {
		switch name {
		case "name":
			return r.text(path, v, &p.Name)
		case "tools":
			return r.tools(path, v, &p.Tools)
		}
		return unknownField(path)
	})
}

func (r paramReader) modules(path string, raw json.RawMessage, into *map[string]ModuleSource) error {
	*into = map[string]ModuleSource{}
	return r.members(path, raw, func(specifier string, v json.RawMessage) error {
		var m ModuleSource
		err := r.object(modulePath(specifier), v, func(name, path string, v json.RawMessage) error {
			switch name {
			case "source":
				return r.text(path, v, &m.Source)
			case "type":
				return r.text(path, v, (*string)(&m.Type))
			}
			return unknownField(path)
		})
		(*into)[specifier] = m
		return err
	})
}

// modulePath names a module in the params.
func modulePath(specifier string) string { return fmt.Sprintf("modules[%.80q]", specifier) }

func (r paramReader) logs(path string, raw json.RawMessage, l *LogOptions) error {
	return r.object(path, raw, func(name, path string, v json.RawMessage) error {
		if name != "stream" {
			return unknownField(path)
		}
		return r.boolean(path, v, &l.Stream)
	})
}

func (r paramReader) retain(path string, raw json.RawMessage, into **Retain) error {
	if raw[0] != '{' {
		var wanted bool
		err := r.boolean(path, raw, &wanted)
		if wanted {
			*into = &Retain{}
		}
		return err
	}
	*into = &Retain{}
	return r.object(path, raw, func(name, path string, v json.RawMessage) error {
		if name != "ttlMs" {
			return unknownField(path)
		}
		return r.positive(path, v, &(*into).TTLMs)
	})
}

func (r paramReader) trace(path string, raw json.RawMessage, t *Trace) error {
	return r.object(path, raw, func(name, path string, v json.RawMessage) error {
		switch name {
		case "traceparent":
			return r.text(path, v, &t.Traceparent)
		case "tracestate":
			return r.text(path, v, &t.Tracestate)
		}
		return unknownField(path)
	})
}

// paramReader reads params strictly. The raw values that its methods are given have been scanned, have at least one
// byte, and begin with their first token; path is empty only for the params as a whole.
type paramReader struct{ b Bounds }

func unknownField(path string) error { return FieldError(path, "is not a known field") }

// members walks the members of an object whose keys are data.
func (r paramReader) members(path string, raw json.RawMessage, visit func(key string, v json.RawMessage) error) error {
	err := Members(raw, r.b, func(key []byte, v json.RawMessage) error {
		if !utf8.Valid(key) {
			return FieldError(path, "has a key with lone surrogates")
		}
		return visit(string(key), v)
	})
	return r.fault(path, "an object", err)
}

// fault gives a fault of the text its field; any other error stays what it is.
func (r paramReader) fault(path, kind string, err error) error {
	var fault *TextError
	switch {
	case !errors.As(err, &fault):
		return err
	case fault.Fault == OtherKind && path == "":
		return FieldError("", "params must be %s", kind)
	case fault.Fault == OtherKind:
		return FieldError(path, "must be %s", kind)
	case fault.Fault == Malformed:
		return Errorf(ParseError, "%s", fault)
	}
	return FieldError(path, "%s", fault)
}

// object walks the members of an object whose keys are fields.
func (r paramReader) object(path string, raw json.RawMessage, visit func(name, path string, v json.RawMessage) error) error {
	return r.members(path, raw, func(name string, v json.RawMessage) error {
		field := name
		if len(field) > 80 {
			field = fmt.Sprintf("%.80s…", field)
		}
		if path != "" {
			field = path + "." + field
		}
		return visit(name, field, v)
	})
}

// array walks the items of an array of at most limit.
func (r paramReader) array(path string, raw json.RawMessage, limit int, visit func(path string, v json.RawMessage) error) error {
	n := 0
	return r.items(path, raw, limit, func(v json.RawMessage) error {
		n++
		return visit(itemPath(path, n-1), v)
	})
}

// items is array for those whose paths are not worth making for each.
func (r paramReader) items(path string, raw json.RawMessage, limit int, visit func(v json.RawMessage) error) error {
	n := 0
	err := Items(raw, r.b, func(v json.RawMessage) error {
		if n++; n > limit {
			return FieldError(path, "has more than %d items", limit)
		}
		return visit(v)
	})
	return r.fault(path, "an array", err)
}

func itemPath(path string, n int) string { return fmt.Sprintf("%s[%d]", path, n) }

func (r paramReader) text(path string, raw json.RawMessage, into *string) error {
	if raw[0] != '"' {
		return FieldError(path, "must be a string")
	}
	s, lone := unescape(raw[1 : len(raw)-1])
	if lone {
		return FieldError(path, "must not hold lone surrogates")
	}
	*into = string(s)
	return nil
}

func (r paramReader) boolean(path string, raw json.RawMessage, into *bool) error {
	if raw[0] != 't' && raw[0] != 'f' {
		return FieldError(path, "must be true or false")
	}
	*into = raw[0] == 't'
	return nil
}
