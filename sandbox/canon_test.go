package sandbox_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// decoded turns an encoded value into the canonical form of codemodeCorpus.
func decoded(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return canon(v)
}

func tag(kind string, more ...any) map[string]any {
	m := map[string]any{"$t": kind}
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

func canon(v any) any {
	switch v := v.(type) {
	case string:
		return canonText(v)
	case []any:
		return canonList(v)
	case map[string]any:
		if len(v) == 1 {
			for key, x := range v {
				if strings.HasPrefix(key, "@") {
					return canonTag(key, x)
				}
			}
		}
		return canonObject(v)
	}
	return v
}

func canonObject(o map[string]any) any {
	out := map[string]any{}
	for k, x := range o {
		out[k] = canon(x)
	}
	if _, clash := o["$t"]; clash {
		return tag("esc", "v", out)
	}
	return out
}

func canonList(list []any) []any {
	out := []any{}
	for _, x := range list {
		if o, ok := x.(map[string]any); ok && len(o) == 1 && o["@hole"] != nil {
			for range int(o["@hole"].(float64)) {
				out = append(out, tag("hole"))
			}
			continue
		}
		out = append(out, canon(x))
	}
	return out
}

func canonTag(key string, x any) any {
	switch key {
	case "@undefined":
		return tag("undefined")
	case "@number":
		return tag("num", "v", x)
	case "@bigint":
		return tag("bigint", "v", x)
	case "@date":
		if x == nil {
			return tag("date", "v", "Invalid")
		}
		return tag("date", "v", time.UnixMilli(int64(x.(float64))).UTC().Format("2006-01-02T15:04:05.000Z"))
	case "@regexp":
		return tag("regexp", "source", x.([]any)[0], "flags", x.([]any)[1])
	case "@map":
		pairs := []any{}
		for _, p := range x.([]any) {
			pairs = append(pairs, canonList(p.([]any)))
		}
		return tag("map", "v", pairs)
	case "@set":
		return tag("set", "v", canonList(x.([]any)))
	case "@error":
		return canonError(x.(map[string]any))
	case "@bytes":
		return canonBytes("Uint8Array", x.(string))
	case "@buffer":
		return canonBytes(x.([]any)[0].(string), x.([]any)[1].(string))
	case "@object":
		return canonObject(x.(map[string]any))
	case "@ref":
		return tag("ref", "path", "$"+dotted(x.(string)))
	case "@boxed":
		return tag("boxed", "v", canon(x.([]any)[0]))
	case "@headers":
		return tag("obj", "class", "Headers", "v", x)
	case "@request":
		return tag("obj", "class", "Request", "own", map[string]any{})
	case "@response":
		return tag("obj", "class", "Response", "own", map[string]any{})
	case "@utf16":
		return loneSurrogates(x.(string))
	}
	return tag("unknown", "tag", key)
}

// loneSurrogates reads code units as encoding/json reads their escapes.
func loneSurrogates(text string) string {
	b, _ := base64.StdEncoding.DecodeString(text)
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

// dotted writes a JSON pointer as the canonical form writes paths; indexes in brackets.
func dotted(pointer string) string {
	var out strings.Builder
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch {
		case step == "":
		case strings.Trim(step, "0123456789") == "":
			out.WriteString("[" + step + "]")
		default:
			out.WriteString("." + step)
		}
	}
	return out.String()
}

func canonError(o map[string]any) any {
	e := tag("error", "name", o["name"], "message", canon(o["message"]))
	own := map[string]any{}
	for k, x := range o {
		switch k {
		case "name", "message", "stack":
		case "cause", "errors":
			e[k] = canon(x)
		default:
			own[k] = canon(x)
		}
	}
	if len(own) > 0 {
		e["own"] = own
	}
	return e
}

func canonBytes(kind, text string) any {
	b, _ := base64.StdEncoding.DecodeString(text)
	if len(b) > 1024 {
		h := uint32(0x811c9dc5)
		for _, c := range b {
			h = (h ^ uint32(c)) * 0x01000193
		}
		return tag("bytes", "kind", kind, "len", len(b), "fnv", fmt.Sprintf("%08x", h))
	}
	return tag("bytes", "kind", kind, "len", len(b), "v", text)
}

func canonText(s string) any {
	units := utf16.Encode([]rune(s))
	if len(units) <= 1024 {
		return s
	}
	return tag("str", "len", len(units), "fnv", fnvOf(s), "head", string(utf16.Decode(units[:48])))
}

// fnvOf is FNV-1a over the low and then the high byte of each UTF-16 unit.
func fnvOf(s string) string {
	h := uint32(0x811c9dc5)
	for _, u := range utf16.Encode([]rune(s)) {
		h = (h ^ uint32(u&0xff)) * 0x01000193
		h = (h ^ uint32(u>>8)) * 0x01000193
	}
	return fmt.Sprintf("%08x", h)
}
