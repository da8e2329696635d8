package codemode

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenPunctuator tokenKind = iota
	tokenName
	tokenPrivate
	tokenNumber
	tokenString
	tokenTemplate // the backtick that begins one
	tokenEnd
)

// number is a literal of ECMA-262, section 12.9.3, without the old octal ones, which no module may have.
var number = regexp.MustCompile(`^(?:0[xX][\da-fA-F]+(?:_[\da-fA-F]+)*n?|0[oO][0-7]+(?:_[0-7]+)*n?|0[bB][01]+(?:_[01]+)*n?|` +
	`(?:0|[1-9]\d*(?:_\d+)*)n|(?:(?:0|[1-9]\d*(?:_\d+)*)(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?)`)

// punctuators by their length, the longest first.
var punctuators = []map[string]bool{
	set(">>>="), set("... === !== **= <<= >>= >>> &&= ||= ??="),
	set("=> == != <= >= && || ?? ?. ++ -- += -= *= /= %= &= |= ^= << >> **"),
	set("{ } ( ) [ ] ; , < > + - * / % & | ^ ! ~ ? : = ."),
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// next goes to the next token.
func (p *parser) next() {
	p.last = p.tokenEnd
	p.tokenStart, p.newline = p.blank(p.tokenEnd)
	p.token()
}

// blank is where white space and comments from at end, and whether they have an end of line.
func (p *parser) blank(at int) (end int, newline bool) {
	for at < len(p.text) {
		switch rest := p.text[at:]; {
		case strings.HasPrefix(rest, "//"):
			at += lineLength(rest)
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				p.fail() // no token begins so; looking again at each would take the square of the length
			}
			n += len("/**/")
			newline = newline || lineLength(rest[:n]) < n
			at += n
		default:
			r, n := utf8.DecodeRuneInString(rest)
			if !isSpace(r) {
				return at, newline
			}
			newline = newline || isLineEnd(r)
			at += n
		}
	}
	return at, newline
}

// lineLength is the length of the first line of s, without its end.
func lineLength(s string) int {
	if n := strings.IndexFunc(s, isLineEnd); n >= 0 {
		return n
	}
	return len(s)
}

func isLineEnd(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' }

// isSpace tells whether \s of a regular expression in JavaScript matches r, and trim takes it away.
func isSpace(r rune) bool {
	return r == ' ' || r >= '\t' && r <= '\r' || r == '\ufeff' || isLineEnd(r) || r > unicode.MaxASCII && unicode.Is(unicode.Zs, r)
}

func (p *parser) token() {
	at := p.tokenStart
	if at >= len(p.text) {
		p.take(tokenEnd, "")
		return
	}
	switch c := p.text[at]; {
	case c == '`':
		p.take(tokenTemplate, "`")
	case c == '"' || c == '\'':
		p.take(tokenString, p.text[at:p.endOfString(at)])
	case isDigit(c) || c == '.' && at+1 < len(p.text) && isDigit(p.text[at+1]):
		p.numberToken()
	default:
		if !p.nameToken() {
			p.punctuatorToken()
		}
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (p *parser) take(kind tokenKind, value string) {
	p.kind, p.value, p.escaped = kind, value, false
	p.tokenEnd = p.tokenStart + len(value)
}

// endOfString is after the closing quote of the string that begins at at.
func (p *parser) endOfString(at int) int {
	quote := p.text[at]
	for at++; at < len(p.text); at++ {
		switch c := p.text[at]; c {
		case quote:
			return at + 1
		case '\n', '\r':
			p.fail()
		case '\\':
			if at++; strings.HasPrefix(p.text[min(at, len(p.text)):], "\r\n") {
				at++
			}
		}
	}
	p.fail()
	return 0
}

func (p *parser) numberToken() {
	value := number.FindString(p.text[p.tokenStart:])
	if value == "" {
		p.fail()
	}
	p.take(tokenNumber, value)
	r, _ := utf8.DecodeRuneInString(p.text[p.tokenEnd:])
	if p.tokenEnd < len(p.text) && (r == '\\' || r >= '0' && r <= '9' || startsName(r)) {
		p.fail()
	}
}

func startsName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '$' || r == '_' ||
		r > unicode.MaxASCII && r != utf8.RuneError && unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start)
}

func continuesName(r rune) bool {
	return startsName(r) || r >= '0' && r <= '9' || r == '\u200c' || r == '\u200d' ||
		r > unicode.MaxASCII && r != utf8.RuneError && unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)
}

// nameToken reads a name, maybe a private one, or nothing.
func (p *parser) nameToken() bool {
	kind, at := tokenName, p.tokenStart
	if p.text[at] == '#' {
		kind = tokenPrivate
		at++
	}
	first := at
	var plain []byte // what has been read, without escapes; nil as long as there is none
	for at < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[at:])
		isPart := at > first && continuesName(r) || startsName(r)
		if r == '\\' {
			if r, n = escapedRune(p.text[at:]); n > 0 && plain == nil {
				plain = append(make([]byte, 0, 16), p.text[p.tokenStart:at]...)
			}
			isPart = n > 0
		}
		if !isPart {
			break
		}
		if plain != nil {
			plain = utf8.AppendRune(plain, r)
		}
		at += n
	}
	if at == first {
		return false
	}
	p.take(kind, p.text[p.tokenStart:at])
	if plain != nil {
		p.value, p.escaped = string(plain), true
	}
	return true
}

// escapedRune reads \u0061 or \u{61}; n is 0 when it is neither.
func escapedRune(s string) (r rune, n int) {
	hex, size := "", 0
	switch {
	case strings.HasPrefix(s, `\u{`):
		end := strings.IndexByte(s[:min(len(s), 16)], '}')
		if end < 0 {
			return 0, 0
		}
		hex, size = s[len(`\u{`):end], end+1
	case strings.HasPrefix(s, `\u`) && len(s) >= 6:
		hex, size = s[2:6], 6
	}
	code, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || code > unicode.MaxRune {
		return 0, 0
	}
	return rune(code), size
}

func (p *parser) punctuatorToken() {
	rest := p.text[p.tokenStart:]
	for i, known := range punctuators {
		length := len(punctuators) - i
		if len(rest) < length || !known[rest[:length]] {
			continue
		}
		if rest[:length] == "?." && len(rest) > length && isDigit(rest[length]) {
			continue // a condition and a number
		}
		p.take(tokenPunctuator, rest[:length])
		return
	}
	p.fail()
}

// regexpToken makes a token of the regular expression that begins at this one.
func (p *parser) regexpToken() {
	class := false
	for at := p.tokenStart + 1; at < len(p.text); {
		r, n := utf8.DecodeRuneInString(p.text[at:])
		switch {
		case isLineEnd(r):
			p.fail()
		case r == '/' && !class:
			for at++; at < len(p.text) && (p.text[at] == '$' || isWord(p.text[at])); at++ {
			}
			p.tokenEnd = at
			p.next()
			return
		case r == '[':
			class = true
		case r == ']':
			class = false
		case r == '\\':
			next, size := utf8.DecodeRuneInString(p.text[at+n:])
			if isLineEnd(next) {
				p.fail()
			}
			n += size
		}
		at += n
	}
	p.fail()
}

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}
