package protocol

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Decode reads v within b to an exact graph of nil, bool, float64, string, UTF16, *big.Int, Undefined, Handle and
// pointers to the types of this codec. One object is one pointer, however often it is referred to; the graph may have
// cycles. The error is a *TextError or a *ValueError.
func Decode(v Value, b Bounds) (any, error) {
	t, err := parseTree(v, b)
	if err != nil {
		return nil, err
	}
	return newDecoder(t).value(0)
}

// Handles are the handles in v, each once, in the order of its text. The error is that of Decode.
func Handles(v Value) ([]Handle, error) {
	t, err := parseTree(v, ValueBounds)
	if err != nil {
		return nil, err
	}
	d := newDecoder(t)
	if _, err = d.value(0); err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(d.handles))
	return slices.DeleteFunc(d.handles, func(h Handle) bool {
		again := seen[h.ID]
		seen[h.ID] = true
		return again
	}), nil
}

// decoder makes the exact graph. It recurses as deep as the text is nested.
type decoder struct {
	*tree
	made    []any // by node: the object made for it
	handles []Handle
}

func newDecoder(t *tree) *decoder { return &decoder{tree: t, made: make([]any, len(t.nodes))} }

// value decodes the value at n.
func (d *decoder) value(n int32) (any, error) {
	if d.made[n] != nil {
		return d.made[n], nil
	}
	switch d.nodes[n].kind {
	case 'n':
		return nil, nil
	case 't', 'f':
		return d.nodes[n].kind == 't', nil
	case '"':
		return d.stringValue(n), nil
	case '[':
		a := &Array{Items: make([]any, 0, d.nodes[n].size)}
		d.made[n] = a
		return a, d.array(n, a)
	case '{':
		if tag, body := d.tag(n); tag != "" {
			return d.tagged(n, tag, body)
		}
		o := &Object{Members: make([]Member, 0, d.nodes[n].size)}
		d.made[n] = o
		return o, d.object(n, &o.Members)
	}
	return d.number(n)
}

func (t *tree) number(n int32) (float64, error) {
	f, err := strconv.ParseFloat(string(t.raw(n)), 64)
	if err != nil {
		return 0, t.fault(n, "number out of range")
	}
	return f, nil
}

// stringValue returns the string at n as a string when it is well formed, else as UTF16.
func (t *tree) stringValue(n int32) any {
	s, lone := t.str(n)
	if lone {
		return toUTF16(string(s))
	}
	return string(s)
}

func (d *decoder) array(n int32, a *Array) error {
	length := int64(0)
	return d.items(n, func(i int32) error {
		item, err := d.item(i)
		if err != nil {
			return err
		}
		a.Items = append(a.Items, item)
		if length += width(item); length > maxArrayLength {
			return d.fault(n, "array longer than an array can be")
		}
		return nil
	})
}

// width is how many indices of an array an item takes.
func width(item any) int64 {
	if h, ok := item.(Hole); ok {
		return int64(h)
	}
	return 1
}

// item decodes an item of an array, where holes may stand.
func (d *decoder) item(n int32) (any, error) {
	if tag, body := d.tag(n); tag == "@hole" {
		return d.hole(n, body)
	}
	return d.value(n)
}

func (t *tree) hole(n, body int32) (Hole, error) {
	count, err := strconv.ParseUint(string(t.raw(body)), 10, 32)
	if err != nil || count == 0 {
		return 0, t.fault(n, "@hole is a whole number from 1 to 4294967295")
	}
	return Hole(count), nil
}

func (d *decoder) object(n int32, into *[]Member) error {
	return d.members(n, func(key string, v int32) error {
		value, err := d.value(v)
		*into = append(*into, Member{key, value})
		return err
	})
}

// tagged decodes the tag at n.
func (d *decoder) tagged(n int32, tag string, body int32) (any, error) {
	switch tag {
	case "@object":
		if d.nodes[body].kind != '{' {
			return nil, d.fault(n, "@object is an object")
		}
		o := &Object{}
		d.made[n] = o
		return o, d.object(body, &o.Members)
	case "@map":
		m := &Map{}
		d.made[n] = m
		return m, d.entries(n, body, m)
	case "@set":
		s := &Set{}
		d.made[n] = s
		return s, d.setItems(n, body, s)
	case "@error":
		e := &ErrorValue{Name: "Error"}
		d.made[n] = e
		return e, d.errorValue(n, body, e)
	case "@formdata":
		f := &FormData{}
		d.made[n] = f
		return f, d.form(n, body, f, d.value)
	case "@ref":
		return d.ref(n, body)
	}
	v, err := d.leaf(n, tag, body)
	if h, is := v.(Handle); is {
		d.handles = append(d.handles, h)
	}
	if err == nil && d.isReferable(n) {
		d.made[n] = v
	}
	return v, err
}

// ref decodes a reference. What it leads to stands earlier, so it was made before.
func (d *decoder) ref(n, body int32) (any, error) {
	target, err := d.target(n, body)
	if err != nil {
		return nil, err
	}
	return d.made[target], nil
}

// target finds what the reference at n leads to.
func (t *tree) target(n, body int32) (int32, error) {
	if !t.isString(body) {
		return 0, t.fault(n, "@ref is a JSON Pointer")
	}
	target, ok := t.resolve(t.key(body))
	switch {
	case !ok:
		return 0, t.fault(n, fmt.Sprintf("@ref %.80q leads to no object", t.key(body)))
	case target >= n:
		return 0, t.fault(n, fmt.Sprintf("@ref %.80q leads forward", t.key(body)))
	}
	return target, nil
}

func (d *decoder) entries(n, body int32, m *Map) error {
	return d.pairs(n, body, func(k, v int32) error {
		key, err := d.value(k)
		if err != nil {
			return err
		}
		value, err := d.value(v)
		m.Entries = append(m.Entries, Entry{key, value})
		return err
	})
}

// pairs calls visit with each key and value of the @map at n.
func (t *tree) pairs(n, body int32, visit func(k, v int32) error) error {
	const rule = "@map is an array of pairs"
	if !t.isArray(body, -1) {
		return t.fault(n, rule)
	}
	return t.items(body, func(pair int32) error {
		if !t.isArray(pair, 2) {
			return t.fault(n, rule)
		}
		return visit(pair+1, t.nodes[pair+1].next)
	})
}

func (d *decoder) setItems(n, body int32, s *Set) error {
	if !d.isArray(body, -1) {
		return d.fault(n, "@set is an array")
	}
	return d.items(body, func(i int32) error {
		item, err := d.value(i)
		s.Items = append(s.Items, item)
		return err
	})
}

func (d *decoder) errorValue(n, body int32, e *ErrorValue) error {
	return d.errorFields(n, body, e, func(key string, v int32) error {
		value, err := d.value(v)
		e.Props = append(e.Props, Member{key, value})
		return err
	})
}

// errorFields fills the three strings of e and calls prop with each of the other members.
func (t *tree) errorFields(n, body int32, e *ErrorValue, prop func(key string, v int32) error) error {
	if t.nodes[body].kind != '{' {
		return t.fault(n, "@error is an object")
	}
	return t.members(body, func(key string, v int32) error {
		field := e.field(key)
		if field == nil {
			return prop(key, v)
		}
		if !t.isString(v) {
			return t.fault(v, "must be a string")
		}
		*field = t.key(v)
		return nil
	})
}

// field returns where e keeps the member of that name, nil for one of Props.
func (e *ErrorValue) field(key string) *string {
	switch key {
	case "name":
		return &e.Name
	case "message":
		return &e.Message
	case "stack":
		return &e.Stack
	}
	return nil
}

// toUTF16 turns generalised UTF-8 into code units.
func toUTF16(s string) UTF16 {
	var u UTF16
	for len(s) > 0 {
		if lone := surrogate(s); lone != 0 {
			u, s = append(u, uint16(lone)), s[3:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		if s = s[n:]; r > math.MaxUint16 {
			r -= 0x10000
			u = append(u, uint16(0xD800|r>>10), uint16(0xDC00|r&0x3FF))
			continue
		}
		u = append(u, uint16(r))
	}
	return u
}
