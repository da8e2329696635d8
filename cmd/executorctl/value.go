package main

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/executord/executord/ipc/protocol"
)

// printValue prints the value of a program. See runCommand.Help.
func printValue(s stream, v protocol.Value) error {
	graph, err := protocol.Decode(v, protocol.ValueBounds)
	if err != nil {
		return fmt.Errorf("cannot read the value: %w", err)
	}
	text := string(v)
	switch x := graph.(type) {
	case protocol.Undefined:
		return nil
	case string:
		text = printable(x, s.terminal)
	default:
		if s.terminal {
			text = printable(show(v), true)
		}
	}
	_, err = fmt.Fprintln(s, text)
	return err
}

// show writes a value for people.
func show(v protocol.Value) string {
	graph, err := protocol.Decode(v, protocol.ValueBounds)
	if err != nil {
		return string(v)
	}
	p := shower{open: map[any]bool{}}
	p.value(graph, 0)
	return p.b.String()
}

// shower writes a decoded value in the manner of JavaScript.
type shower struct {
	b    strings.Builder
	open map[any]bool // what is being written: a reference to it is a cycle
}

// Bounds of what is shown.
const (
	maxShownDepth = 32
	maxShownItems = 1000
	maxShownBytes = 256
	maxLineWidth  = 72
)

func (p *shower) value(v any, depth int) {
	switch v := v.(type) {
	case nil:
		p.b.WriteString("null")
	case bool:
		p.b.WriteString(strconv.FormatBool(v))
	case float64:
		p.b.WriteString(number(v))
	case string:
		p.b.WriteString(strconv.Quote(v))
	case protocol.UTF16:
		p.b.WriteString(strconv.Quote(string(utf16.Decode(v))))
	case *big.Int:
		p.b.WriteString(v.String() + "n")
	case protocol.Undefined:
		p.b.WriteString("undefined")
	case protocol.Handle:
		p.b.WriteString("[Function " + v.ID + "]")
	default:
		p.object(v, depth)
	}
}

// object writes what has an identity.
func (p *shower) object(v any, depth int) {
	if p.open[v] {
		p.b.WriteString("[Circular]")
		return
	}
	if depth > maxShownDepth {
		p.b.WriteString("[…]")
		return
	}
	p.open[v] = true
	defer delete(p.open, v)
	switch v := v.(type) {
	case *protocol.Object:
		p.members("", v.Members, depth)
	case *protocol.Array:
		p.list("[", "]", v.Items, depth)
	case *protocol.Set:
		p.list(fmt.Sprintf("Set(%d) {", len(v.Items)), "}", v.Items, depth)
	case *protocol.Map:
		p.block(fmt.Sprintf("Map(%d) {", len(v.Entries)), "}", len(v.Entries), depth, func(i int) {
			p.value(v.Entries[i].Key, depth+1)
			p.b.WriteString(" => ")
			p.value(v.Entries[i].Value, depth+1)
		})
	case *protocol.FormData:
		p.block("FormData {", "}", len(v.Entries), depth, func(i int) {
			p.b.WriteString(key(v.Entries[i].Name) + ": ")
			p.value(v.Entries[i].Value, depth+1)
		})
	case *protocol.Headers:
		p.headers("Headers {", v.List, depth)
	case *protocol.RequestValue:
		p.headers("Request "+v.Method+" "+strconv.Quote(v.URL)+" {", v.Headers, depth)
		p.body(v.Body)
	case *protocol.ResponseValue:
		p.headers(strings.TrimRight(fmt.Sprintf("Response %d %s", v.Status, v.StatusText), " ")+" {", v.Headers, depth)
		p.body(v.Body)
	case *protocol.ErrorValue:
		p.b.WriteString(v.Error())
		if len(v.Props) > 0 {
			p.members(" ", v.Props, depth)
		}
	default:
		p.leaf(v)
	}
}

func (p *shower) leaf(v any) {
	switch v := v.(type) {
	case *protocol.Date:
		p.b.WriteString(date(v.Ms))
	case *protocol.RegExp:
		p.b.WriteString("/" + v.Source + "/" + v.Flags)
	case *protocol.URL:
		p.b.WriteString("URL " + strconv.Quote(v.Href))
	case *protocol.Buffer:
		p.bytes(v.Kind, v.Data)
	case *protocol.Blob:
		p.bytes(strings.TrimRight("Blob "+v.Type, " "), v.Data)
	case *protocol.File:
		p.bytes(strings.TrimRight("File "+strconv.Quote(v.Name)+" "+v.Type, " "), v.Data)
	case *protocol.Boxed:
		p.b.WriteString("Object(")
		p.value(v.Value, 0)
		p.b.WriteString(")")
	default:
		fmt.Fprintf(&p.b, "[%T]", v)
	}
}

// bytes writes bytes after what they are.
func (p *shower) bytes(what string, data []byte) {
	fmt.Fprintf(&p.b, "%s(%d bytes) <% x>", what, len(data), data[:min(len(data), maxShownBytes)])
}

func (p *shower) body(data []byte) {
	if data != nil {
		p.bytes(" ", data)
	}
}

func (p *shower) headers(open string, list []protocol.Header, depth int) {
	p.block(open, "}", len(list), depth, func(i int) {
		p.b.WriteString(key(list[i].Name) + ": " + strconv.Quote(list[i].Value))
	})
}

func (p *shower) members(before string, members []protocol.Member, depth int) {
	p.block(before+"{", "}", len(members), depth, func(i int) {
		p.b.WriteString(key(members[i].Key) + ": ")
		p.value(members[i].Value, depth+1)
	})
}

func (p *shower) list(open, end string, items []any, depth int) {
	p.block(open, end, len(items), depth, func(i int) {
		if n, hole := items[i].(protocol.Hole); hole {
			fmt.Fprintf(&p.b, "<%d empty>", uint32(n))
			return
		}
		p.value(items[i], depth+1)
	})
}

// block writes items between brackets: on one line where they are short, else one on each.
func (p *shower) block(open, end string, n, depth int, item func(i int)) {
	p.b.WriteString(open)
	if n == 0 {
		p.b.WriteString(end)
		return
	}
	start := p.b.Len()
	items := make([]string, 0, min(n, maxShownItems)+1)
	whole := p.b.String()
	for i := range min(n, maxShownItems) {
		p.b.Reset()
		item(i)
		items = append(items, p.b.String())
	}
	p.b.Reset()
	p.b.WriteString(whole)
	if n > maxShownItems {
		items = append(items, fmt.Sprintf("… %d more", n-maxShownItems))
	}
	line := strings.Join(items, ", ")
	if start-strings.LastIndexByte(whole, '\n')+len(line) <= maxLineWidth && !strings.Contains(line, "\n") {
		space := ""
		if strings.HasSuffix(open, "{") {
			space = " "
		}
		p.b.WriteString(space + line + space + end)
		return
	}
	indent := "\n" + strings.Repeat("  ", depth+1)
	p.b.WriteString(indent + strings.Join(pack(items), ","+indent) + "\n" + strings.Repeat("  ", depth) + end)
}

// pack puts short items together on lines, as long as all are short.
func pack(items []string) (lines []string) {
	const short = 12
	if slices.ContainsFunc(items, func(s string) bool { return len(s) > short }) {
		return items
	}
	for _, item := range items {
		last := len(lines) - 1
		if last >= 0 && len(lines[last])+len(item) < maxLineWidth {
			lines[last] += ", " + item
			continue
		}
		lines = append(lines, item)
	}
	return lines
}

// key quotes what is not an identifier.
func key(k string) string {
	for i, r := range k {
		if r == '_' || r == '$' || r|0x20 >= 'a' && r|0x20 <= 'z' || i > 0 && r >= '0' && r <= '9' {
			continue
		}
		return strconv.Quote(k)
	}
	if k == "" {
		return `""`
	}
	return k
}

// number writes a number as JavaScript does, but for the exponents of some.
func number(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0 && math.Signbit(f):
		return "-0"
	case math.Abs(f) >= 1e21 || f != 0 && math.Abs(f) < 1e-6:
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// date writes a Date in the format of toISOString where its year has four digits.
func date(ms float64) string {
	if math.IsNaN(ms) {
		return "Invalid Date"
	}
	t := time.UnixMilli(int64(ms)).UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return fmt.Sprintf("Date(%.0f)", ms)
	}
	return t.Format("2006-01-02T15:04:05.000Z")
}
