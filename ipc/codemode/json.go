package codemode

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/executord/executord/ipc/protocol"
)

// For hosts whose tools speak JSON.

// FromJSON makes a Value of a JSON text, in which no key has a meaning. A number beyond the range of numbers becomes null. The
// text has to be within protocol.ValueBounds.
func FromJSON(text []byte) (protocol.Value, error) {
	if err := protocol.Check(text, protocol.ValueBounds); err != nil {
		return nil, err
	}
	return protocol.Encode((&reader{text: string(text)}).value())
}

// ToJSON makes a JSON text of a Value, as JSON.stringify would; bytes are {"@bytes": base64}, and undefined is null.
func ToJSON(v protocol.Value) ([]byte, error) {
	value, err := asJSON(v)
	if err != nil {
		return nil, err
	}
	if value == (protocol.Undefined{}) {
		return []byte("null"), nil
	}
	text := jsonText(measure(value).value)
	if len(text) > protocol.ValueBounds.Bytes {
		return nil, errors.New("the value is too large")
	}
	return text, nil
}

// CheckNamespace says why a provider cannot have that name; empty when it can.
func CheckNamespace(name string) string {
	if fault := faultOfName("Provider", name); fault != "" {
		return fault
	}
	if reservedWords[name] {
		return `Provider name "` + name + `" is a word of the language`
	}
	return ""
}

// Cut is the beginning of s in at most limit bytes, with a mark where something is missing, and valid UTF-8.
func Cut(s string, limit int) string {
	if len(s) > limit {
		end := max(0, limit-len("…"))
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
