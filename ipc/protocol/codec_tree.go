package protocol

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// tree is a checked text taken apart: its nodes in the order of the text. The children of an array are its items, those
// of an object a key and a value in turn.
type tree struct {
	text  []byte
	nodes []node
	// itemsOf and keysOf find children quickly in the containers that a reference went through.
	itemsOf map[int32][]int32
	keysOf  map[int32]map[string]int32
}

type node struct {
	start, end int32 // in the text
	next       int32 // the node after all that is in this one
	size       int32 // items of an array, members of an object
	kind       byte  // first byte of the text; 'k' for a key
}

// parseTree checks text and takes it apart.
func parseTree(text []byte, b Bounds) (*tree, error) {
	b.Bytes = min(b.Bytes, math.MaxInt32)
	s := scanner{text: text, b: b}
	if !s.fits() || !s.value() || !s.end() {
		return nil, s.err
	}
	t := &tree{text: text, nodes: make([]node, 0, s.nodes+s.keys)}
	s.pos = 0
	t.grow(&s)
	return t, nil
}

// grow adds the value that g stands before. The text is known to be sound and its depth bounded.
func (t *tree) grow(g *scanner) {
	g.space()
	n := t.add(g, g.peek())
	switch kind := t.nodes[n].kind; kind {
	case '[', '{':
		g.pos++
		for g.space(); g.peek() != kind+2; g.space() {
			if g.peek() == ',' {
				g.pos++
			}
			if kind == '{' {
				g.space()
				k := t.add(g, 'k')
				g.str()
				t.finish(g, k)
				g.space()
				g.pos++
			}
			t.nodes[n].size++
			t.grow(g)
		}
		g.pos++
	case '"':
		g.str()
	case 't', 'n':
		g.pos += len("true")
	case 'f':
		g.pos += len("false")
	default:
		g.number()
	}
	t.finish(g, n)
}

func (t *tree) add(g *scanner, kind byte) int32 {
	t.nodes = append(t.nodes, node{start: int32(g.pos), kind: kind})
	return int32(len(t.nodes) - 1)
}

func (t *tree) finish(g *scanner, n int32) {
	t.nodes[n].end, t.nodes[n].next = int32(g.pos), int32(len(t.nodes))
}

func (t *tree) raw(n int32) []byte { return t.text[t.nodes[n].start:t.nodes[n].end] }

// str returns the string or key at n as WTF-8.
func (t *tree) str(n int32) (s []byte, lone bool) {
	raw := t.raw(n)
	return unescape(raw[1 : len(raw)-1])
}

// key returns the key at n as WTF-8.
func (t *tree) key(n int32) string {
	s, _ := t.str(n)
	return string(s)
}

// isString tells that there is a string at n.
func (t *tree) isString(n int32) bool { return t.nodes[n].kind == '"' }

// isArray tells that there is an array of size items at n; any size when negative.
func (t *tree) isArray(n, size int32) bool {
	return t.nodes[n].kind == '[' && (size < 0 || t.nodes[n].size == size)
}

// items calls visit with each item of the array at n.
func (t *tree) items(n int32, visit func(item int32) error) error {
	for i := n + 1; i < t.nodes[n].next; i = t.nodes[i].next {
		if err := visit(i); err != nil {
			return err
		}
	}
	return nil
}

// members calls visit with each member of the object at n. A key that comes twice is a fault.
func (t *tree) members(n int32, visit func(key string, value int32) error) error {
	var seen keySet
	for k := n + 1; k < t.nodes[n].next; k = t.nodes[k+1].next {
		key, _ := t.str(k)
		if !seen.add(key) {
			return t.fault(n, fmt.Sprintf("key %.80q comes twice", key))
		}
		if err := visit(string(key), k+1); err != nil {
			return err
		}
	}
	return nil
}

// tag returns the tag that the value at n is, with its body; "" when it is none.
func (t *tree) tag(n int32) (name string, body int32) {
	if o := t.nodes[n]; o.kind != '{' || o.size != 1 {
		return "", 0
	}
	if key := t.key(n + 1); strings.HasPrefix(key, "@") {
		return key, n + 2
	}
	return "", 0
}

// fault makes the error for the value at n.
func (t *tree) fault(n int32, reason string) error {
	return &ValueError{Path: t.pointer(n), Reason: reason}
}

// pointer returns the JSON Pointer of the node n.
func (t *tree) pointer(n int32) string {
	path := ""
	for at := int32(0); at != n; {
		i, index := at+1, 0
		object := t.nodes[at].kind == '{'
		for t.nodes[i].next <= n {
			i = t.nodes[i].next
			index++
		}
		switch {
		case !object:
			path += "/" + strconv.Itoa(index)
		case t.nodes[i].kind == 'k': // n is a key: name its object
			return path
		default:
			path += "/" + escapePointer(t.key(i-1))
		}
		at = i
	}
	return path
}

var (
	pointerEscapes   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescapes = strings.NewReplacer("~1", "/", "~0", "~")
)

func escapePointer(key string) string { return pointerEscapes.Replace(key) }

// resolve follows a JSON Pointer to the place of a Value that can be referred to: an object of some kind, not a
// primitive and not the inside of a tag.
func (t *tree) resolve(pointer string) (n int32, ok bool) {
	if pointer != "" && pointer[0] != '/' {
		return 0, false
	}
	inside := placeValue
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = pointerUnescapes.Replace(token)
		child, found := t.child(n, token)
		if !found {
			return 0, false
		}
		inside, n = t.step(inside, n, token), child
	}
	return n, inside == placeValue && t.isReferable(n)
}

// place says what the text at some node is in the grammar of the codec.
type place uint8

const (
	placeNone      place = iota // nothing that leads to a Value
	placeValue                  // a Value
	placeMembers                // the body of @object
	placeError                  // the body of @error
	placeList                   // the body of @set
	placePairs                  // the body of @map
	placePair                   // an entry of it
	placeForm                   // the body of @formdata
	placeFormEntry              // an entry of it, of which the value is a Value
)

// step says what the child called token is, of the node n which is itself p.
func (t *tree) step(p place, n int32, token string) place {
	switch p {
	case placePairs:
		return placePair
	case placePair, placeMembers, placeList:
		return placeValue
	case placeError:
		if token == "name" || token == "message" || token == "stack" {
			return placeNone
		}
		return placeValue
	case placeForm:
		return placeFormEntry
	case placeFormEntry:
		if token == "1" {
			return placeValue
		}
		return placeNone
	case placeNone:
		return placeNone
	}
	switch tag, _ := t.tag(n); tag {
	case "":
		return placeValue
	case "@object":
		return placeMembers
	case "@error":
		return placeError
	case "@set":
		return placeList
	case "@map":
		return placePairs
	case "@formdata":
		return placeForm
	}
	return placeNone
}

// isReferable tells that the Value at n has an identity.
func (t *tree) isReferable(n int32) bool {
	if k := t.nodes[n].kind; k != '{' && k != '[' {
		return false
	}
	switch tag, _ := t.tag(n); tag {
	case "@undefined", "@hole", "@number", "@bigint", "@utf16", "@ref":
		return false
	}
	return true
}

// child finds the item or member called token.
func (t *tree) child(n int32, token string) (child int32, ok bool) {
	if t.nodes[n].kind == '[' {
		i, err := strconv.ParseInt(token, 10, 32)
		list := t.positions(n)
		if err != nil || i < 0 || i >= int64(len(list)) || strconv.FormatInt(i, 10) != token {
			return 0, false
		}
		return list[i], true
	}
	child, ok = t.keys(n)[token]
	return child, ok
}

// positions returns the items of the array at n. Arrays that references go through are few and asked often.
func (t *tree) positions(n int32) []int32 {
	list, built := t.itemsOf[n]
	if !built {
		_ = t.items(n, func(item int32) error { list = append(list, item); return nil })
		if t.itemsOf == nil {
			t.itemsOf = map[int32][]int32{}
		}
		t.itemsOf[n] = list
	}
	return list
}

// keys returns the members of the object at n, none for a scalar.
func (t *tree) keys(n int32) map[string]int32 {
	keys, built := t.keysOf[n]
	if !built {
		keys = make(map[string]int32, t.nodes[n].size)
		for k := n + 1; k < t.nodes[n].next; k = t.nodes[k+1].next {
			keys[t.key(k)] = k + 1
		}
		if t.keysOf == nil {
			t.keysOf = map[int32]map[string]int32{}
		}
		t.keysOf[n] = keys
	}
	return keys
}
