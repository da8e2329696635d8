package protocol

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Inside this package a JavaScript string that is not well formed is held as generalised UTF-8 (WTF-8): each lone
// surrogate is the three bytes that UTF-8 would give its code point. Such a string is not valid UTF-8, so it can never
// be mistaken for another one.

// unescape returns what stands between the quotes of a checked JSON string, as WTF-8; lone is true when it has a lone
// surrogate. Without escapes the result is raw itself.
func unescape(raw []byte) (s []byte, lone bool) {
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return raw, false
	}
	s = append(make([]byte, 0, len(raw)), raw[:i]...)
	for i < len(raw) {
		if raw[i] != '\\' {
			n := bytes.IndexByte(raw[i:], '\\')
			if n < 0 {
				n = len(raw) - i
			}
			s = append(s, raw[i:i+n]...)
			i += n
			continue
		}
		if raw[i+1] != 'u' {
			s = append(s, shortEscapes[raw[i+1]])
			i += 2
			continue
		}
		r := codeUnit(raw[i+2:])
		i += 6
		if utf16.IsSurrogate(r) && i+6 <= len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
			if pair := utf16.DecodeRune(r, codeUnit(raw[i+2:])); pair != utf8.RuneError {
				r, i = pair, i+6
			}
		}
		lone = lone || utf16.IsSurrogate(r)
		s = appendCodePoint(s, r)
	}
	return s, lone
}

var shortEscapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// codeUnit reads four checked hexadecimal digits.
func codeUnit(hex []byte) (r rune) {
	for _, c := range hex[:4] {
		r = r<<4 | rune(hexDigit(c))
	}
	return r
}

// appendCodePoint appends r in UTF-8, a surrogate in its generalised form.
func appendCodePoint(dst []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0xBF, 0x80|byte(r)&0xBF)
	}
	return utf8.AppendRune(dst, r)
}

// surrogate returns the surrogate that s begins with in generalised UTF-8, 0 when it begins with none.
func surrogate(s string) rune {
	if len(s) < 3 || s[0] != 0xED || s[1]&0xE0 != 0xA0 || s[2]&0xC0 != 0x80 {
		return 0
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F)
}

// wellFormed gives a string that came out of unescape valid UTF-8: U+FFFD for each lone surrogate.
func wellFormed(s []byte, lone bool) string {
	if !lone {
		return string(s)
	}
	out := make([]byte, 0, len(s))
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 {
			n = 3 // unescape leaves no other invalid bytes
		}
		out, s = utf8.AppendRune(out, r), s[n:]
	}
	return string(out)
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. What is not valid UTF-8 becomes U+FFFD, so the result is always valid.
func appendString(dst []byte, s string) []byte { return quote(dst, s, false) }

// appendWTF8 appends s as a JSON string and writes lone surrogates as escapes.
func appendWTF8(dst []byte, s string) []byte { return quote(dst, s, true) }

// quote copies plain runs at once and escapes only what RFC 8259 demands, and U+2028 and U+2029, which are line ends
// in JavaScript sources before ES2019.
func quote(dst []byte, s string, surrogates bool) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if plainByte[s[i]] {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if s[i] >= utf8.RuneSelf && r != '\u2028' && r != '\u2029' && (r != utf8.RuneError || n > 1) {
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		if r == utf8.RuneError {
			if lone := surrogate(s[i:]); surrogates && lone != 0 {
				r, n = lone, 3
			}
		}
		dst = appendEscape(dst, r)
		i += n
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// plainByte marks the ASCII bytes that stand for themselves in a JSON string.
var plainByte = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case utf8.RuneError:
		return append(dst, "\uFFFD"...)
	}
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// comma separates the i-th part from the one before it.
func comma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		dst = appendString(comma(dst, i), s)
	}
	return append(dst, ']')
}

// trimSpace removes the white space of JSON.
func trimSpace(text []byte) []byte { return bytes.Trim(text, " \t\r\n") }

// decodeBase64 reads RFC 4648 base64 with padding, and nothing that more than one text could stand for.
func decodeBase64(s string) (data []byte, ok bool) {
	if strings.ContainsAny(s, "\r\n") { // encoding/base64 passes over line ends
		return nil, false
	}
	data, err := base64.StdEncoding.Strict().DecodeString(s)
	return data, err == nil
}

// keySet remembers the keys of one object. It allocates nothing for a few keys and hashes when there are many, so that
// many keys cost no more than their bytes.
type keySet struct {
	few  [16][]byte
	n    int
	many map[string]struct{}
}

// add returns false when key was there before. It may keep key.
func (k *keySet) add(key []byte) bool {
	if k.many == nil && k.n < len(k.few) {
		for _, other := range k.few[:k.n] {
			if bytes.Equal(other, key) {
				return false
			}
		}
		k.few[k.n] = key
		k.n++
		return true
	}
	if k.many == nil {
		k.many = make(map[string]struct{}, 4*len(k.few))
		for _, other := range k.few {
			k.many[string(other)] = struct{}{}
		}
	}
	if _, there := k.many[string(key)]; there {
		return false
	}
	k.many[string(key)] = struct{}{}
	return true
}
