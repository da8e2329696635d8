package protocol

import (
	"encoding/json"
	"fmt"
)

// Any tells that every single name is a tool: All is set, or Tools was never filled.
func (t Tools) Any() bool { return t.All || t.Paths == nil }

// MarshalJSON writes "*" or the array of names and paths.
func (t Tools) MarshalJSON() ([]byte, error) {
	if t.Any() {
		return []byte(`"*"`), nil
	}
	dst := []byte{'['}
	for i, path := range t.Paths {
		dst = comma(dst, i)
		if len(path) == 1 {
			dst = appendString(dst, path[0])
		} else {
			dst = appendStrings(dst, path)
		}
	}
	return append(dst, ']'), nil
}

// UnmarshalJSON reads "*" or an array of names and paths; the fault is an *Error of type invalid_params.
func (t *Tools) UnmarshalJSON(text []byte) error {
	if err := Check(text, ValueBounds); err != nil {
		return FieldError("tools", "%s", err)
	}
	return paramReader{ValueBounds}.tools("tools", trimSpace(text), t)
}

// tools reads the field at path.
func (r paramReader) tools(path string, raw json.RawMessage, into *Tools) error {
	if raw[0] == '"' {
		var star string
		if err := r.text(path, raw, &star); err != nil {
			return err
		}
		if star != "*" {
			return FieldError(path, `must be "*" or an array of names`)
		}
		*into = Tools{All: true}
		return nil
	}
	paths := [][]string{}
	err := r.array(path, raw, MaxTools, func(path string, item json.RawMessage) error {
		names, err := r.toolPath(path, item)
		paths = append(paths, names)
		return err
	})
	*into = Tools{Paths: paths}
	return err
}

// toolPath reads one tool: a name, or an array of names.
func (r paramReader) toolPath(path string, raw json.RawMessage) (names []string, err error) {
	if raw[0] == '"' {
		names = make([]string, 1)
		return names, r.text(path, raw, &names[0])
	}
	if raw[0] != '[' {
		return nil, FieldError(path, "must be a tool name or an array of names")
	}
	err = r.array(path, raw, MaxToolPath, func(path string, item json.RawMessage) error {
		names = append(names, "")
		return r.text(path, item, &names[len(names)-1])
	})
	return names, err
}

// validate holds the tools of the provider at path to their rules.
func (t Tools) validate(path string) error {
	if t.All && t.Paths != nil {
		return FieldError(path, "has both all names and a list")
	}
	if len(t.Paths) > MaxTools {
		return FieldError(path, "has %d tools, more than %d", len(t.Paths), MaxTools)
	}
	seen := make(map[string]bool, len(t.Paths))
	for i, names := range t.Paths {
		item := fmt.Sprintf("%s[%d]", path, i)
		if err := CheckToolPath(names); err != nil {
			return at(err, item)
		}
		key := string(appendStrings(nil, names))
		if seen[key] {
			return at(Errorf(InvalidProvider, "tool %s comes twice", key), item)
		}
		seen[key] = true
	}
	return nil
}

// at gives a typed fault its field.
func at(err error, field string) error {
	e := *AsError(err)
	e.Field = field
	return &e
}
