package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// maxFileVariables bounds a file of variables, besides its size.
const maxFileVariables = 4096

// assignment is one variable of a file.
type assignment struct {
	name, value string
	line        int // from 1
}

// readFile reads a file of variables.
func readFile(path string) ([]assignment, error) {
	text, err := readRegularFile(path, 0)
	if err != nil {
		return nil, err
	}
	list, err := parseFile(string(text))
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return list, nil
}

// parseFile reads variables as systemd does (EnvironmentFile= in systemd.exec(5), checked with version 257): a line for
// each, NAME=VALUE, empty lines and those that begin with '#' or ';' left out. In a value a backslash takes the next
// character as it is, and continues the line before its end; what stands in single quotes is taken as it is, and in double
// quotes a backslash works before a double quote, a backslash, a dollar sign, a backtick and the end of a line. Space
// around an unquoted value does not count.
//
// Systemd passes over lines that it cannot read, and ends an open quote with the file. Here both are errors.
func parseFile(text string) (list []assignment, err error) {
	p := fileParser{text: text, line: 1}
	for {
		p.skip(" \t\r\n")
		switch {
		case p.rest() == "":
			return list, nil
		case p.peek() == '#' || p.peek() == ';':
			p.until('\n')
			continue
		case len(list) == maxFileVariables:
			return nil, fmt.Errorf("line %d: there are more than %d variables", p.line, maxFileVariables)
		}
		a, err := p.assignment()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", a.line, err)
		}
		list = append(list, a)
	}
}

// fileParser is at a place in the text of a file.
type fileParser struct {
	text string
	pos  int
	line int
}

func (p *fileParser) rest() string { return p.text[p.pos:] }

// peek is the next byte, which must be there.
func (p *fileParser) peek() byte { return p.text[p.pos] }

func (p *fileParser) next() byte {
	c := p.text[p.pos]
	p.pos++
	if c == '\n' {
		p.line++
	}
	return c
}

func (p *fileParser) skip(set string) {
	for p.pos < len(p.text) && strings.IndexByte(set, p.peek()) >= 0 {
		p.next()
	}
}

// until returns what stands before c, or before the end of the text.
func (p *fileParser) until(c byte) string {
	found, _, _ := strings.Cut(p.rest(), string(c))
	for range len(found) {
		p.next()
	}
	return found
}

func (p *fileParser) assignment() (a assignment, err error) {
	a.line = p.line
	line, _, _ := strings.Cut(p.rest(), "\n")
	name, _, found := strings.Cut(line, "=")
	a.name = strings.TrimSpace(name)
	if !found || !isVariable(a.name) { // the line is not repeated: it may hold a secret
		return a, errors.New("it is not a variable, as NAME=VALUE")
	}
	p.pos += len(name) + 1
	a.value, err = p.value()
	if err == nil && (!utf8.ValidString(a.value) || strings.ContainsRune(a.value, 0)) {
		err = fmt.Errorf("the value of %s is no text in UTF-8", a.name)
	}
	return a, err
}

// value reads to the end of the line, or of the last line of a value that goes on.
func (p *fileParser) value() (string, error) {
	var b strings.Builder
	kept := 0      // bytes that stay even if they are space
	begins := true // a quote here is one, and space does not count
	for p.rest() != "" {
		c := p.next()
		switch {
		case c == '\n' || c == '\r':
			return trimAfter(b.String(), kept), nil
		case begins && (c == ' ' || c == '\t'):
		case begins && (c == '\'' || c == '"'):
			if err := p.quoted(c, &b); err != nil {
				return "", err
			}
			kept = b.Len()
		case c == '\\':
			begins = false
			if p.rest() == "" {
				continue
			}
			if c := p.next(); c != '\n' {
				b.WriteByte(c)
				kept = b.Len()
			}
		default:
			begins = false
			b.WriteByte(c)
		}
	}
	return trimAfter(b.String(), kept), nil
}

// trimAfter trims the space at the end of text, but for the first kept bytes.
func trimAfter(text string, kept int) string {
	return text[:kept] + strings.TrimRight(text[kept:], " \t")
}

// quoted reads to the quote that ends the value or this part of it.
func (p *fileParser) quoted(quote byte, b *strings.Builder) error {
	for p.rest() != "" {
		c := p.next()
		switch {
		case c == quote:
			return nil
		case c == '\\' && quote == '"' && p.rest() != "":
			escaped := p.next()
			if strings.IndexByte("\"\\`$\n", escaped) < 0 {
				b.WriteByte('\\')
			}
			if escaped != '\n' {
				b.WriteByte(escaped)
			}
		default:
			b.WriteByte(c)
		}
	}
	return fmt.Errorf("the value begins with %c and has no other", quote)
}

// isVariable tells that name may be that of a variable of the environment.
func isVariable(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == "" &&
		!('0' <= name[0] && name[0] <= '9')
}
