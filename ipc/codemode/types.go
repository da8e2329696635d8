package codemode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/executord/executord/ipc/protocol"
)

// Bounds of the types of one tool: beyond them it has the type unknown, which is never wrong.
const (
	maxSchemaBytes = 1 << 20
	maxSchemaDepth = 20
	maxSchemaNodes = 2000
	maxTypeBytes   = 32 << 10
	maxParamBytes  = 8 << 10 // descriptions of what a tool takes, beside those in its type
)

// ToolType is what a model is to know of a tool. Input and Output are JSON Schemas (2020-12, draft 7 or OpenAPI 3.0), empty
// for none; they may be anything.
type ToolType struct {
	Name, Description string
	Input, Output     json.RawMessage
}

// Types declares a namespace of tools in TypeScript, for a model to read: a type for what each tool takes and answers, and the
// constant. Names of types begin with prefix. The dialect has none; with several namespaces each needs its own.
func Types(namespace, prefix string, tools []ToolType) string {
	var types, constant strings.Builder
	used := map[string]bool{}
	for _, t := range tools {
		name := SanitizeToolName(t.Name)
		typeName := prefix + pascal(name)
		for used[typeName] {
			typeName += "_"
		}
		used[typeName] = true
		input, root := typeOf(t.Input)
		output, _ := typeOf(t.Output)
		fmt.Fprintf(&types, "type %sInput = %s\ntype %sOutput = %s\n", typeName, input, typeName, output)
		fmt.Fprintf(&constant, "\n\t/**\n\t * %s\n", comment(title(t)))
		for _, p := range described(root) {
			fmt.Fprintf(&constant, "\t * @param input.%s - %s\n", comment(p.Key), comment(p.Value.(string)))
		}
		fmt.Fprintf(&constant, "\t */\n\t%s: (input: %sInput) => Promise<%sOutput>;\n", name, typeName, typeName)
	}
	return strings.TrimPrefix(fmt.Sprintf("%s\ndeclare const %s: {%s}", types.String(), namespace, constant.String()), "\n")
}

func title(t ToolType) string {
	if d := trim(t.Description); d != "" {
		return d
	}
	return t.Name
}

// pascal makes get_user GetUser.
func pascal(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '_' && i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z':
			i++
			b.WriteByte(name[i] - 'a' + 'A')
		case i == 0 && c >= 'a' && c <= 'z':
			b.WriteByte(c - 'a' + 'A')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// comment keeps a text on one line, and in the comment that it stands in.
func comment(s string) string {
	s = strings.ReplaceAll(s, "\r\n", " ")
	s = strings.Map(func(r rune) rune {
		if isLineEnd(r) {
			return ' '
		}
		return r
	}, s)
	return strings.ReplaceAll(s, "*/", `*\/`)
}

// typeOf is the type that a schema says, and the schema; nil where there is none.
func typeOf(schema json.RawMessage) (string, *protocol.Object) {
	bounds := protocol.Bounds{Bytes: maxSchemaBytes, Depth: 200, Nodes: 1 << 17}
	if len(schema) == 0 || protocol.Check(schema, bounds) != nil {
		return "unknown", nil
	}
	value := (&reader{text: string(schema)}).value()
	root, _ := value.(*protocol.Object)
	s := schemaTypes{root: root, open: map[*protocol.Object]bool{}, left: maxSchemaNodes}
	text := s.of(value, "", 0)
	if s.left < 0 || len(text) > maxTypeBytes {
		return "unknown", root
	}
	return text, root
}

// described are the properties of a schema that say what they are for.
func described(root *protocol.Object) (list []protocol.Member) {
	if root == nil {
		return nil
	}
	properties, _ := member(root, "properties")
	o, _ := properties.(*protocol.Object)
	if o == nil {
		return nil
	}
	left := maxParamBytes
	for _, p := range o.Members {
		if schema, ok := p.Value.(*protocol.Object); ok {
			if text := stringMember(schema, "description"); text != "" {
				if left -= len(p.Key) + len(text); left < 0 {
					break
				}
				list = append(list, protocol.Member{Key: p.Key, Value: text})
			}
		}
	}
	return list
}

func stringMember(o *protocol.Object, key string) string {
	v, _ := member(o, key)
	s, _ := v.(string)
	return s
}

// schemaTypes makes types of a schema and what it refers to.
type schemaTypes struct {
	root *protocol.Object
	open map[*protocol.Object]bool // that the one at hand is in
	left int                       // schemas that may be looked at
}

func (s *schemaTypes) of(schema any, indent string, depth int) string {
	switch schema {
	case true:
		return "unknown"
	case false:
		return "never"
	}
	o, _ := schema.(*protocol.Object)
	if s.left--; o == nil || depth >= maxSchemaDepth || s.open[o] || s.left < 0 {
		return "unknown"
	}
	s.open[o] = true
	defer delete(s.open, o)
	text := s.object(o, indent, depth+1)
	if nullable, _ := member(o, "nullable"); nullable == true && text != "unknown" && text != "never" && text != "null" {
		return text + " | null"
	}
	return text
}

func (s *schemaTypes) object(o *protocol.Object, indent string, depth int) string {
	if ref := stringMember(o, "$ref"); ref != "" {
		return s.of(s.resolve(ref), indent, depth)
	}
	for _, union := range []struct{ key, operator string }{{"anyOf", " | "}, {"oneOf", " | "}, {"allOf", " & "}} {
		if list, ok := member(o, union.key); ok {
			return s.joined(list, union.operator, indent, depth)
		}
	}
	if values, ok := member(o, "enum"); ok {
		return literals(values)
	}
	if value, ok := member(o, "const"); ok {
		return literal(value)
	}
	kind, _ := member(o, "type")
	_, properties := member(o, "properties")
	switch kind := kind.(type) {
	case string:
		if kind != "object" && kind != "array" && !(properties && simple(kind) == "unknown") {
			return simple(kind)
		}
		if kind == "array" {
			return s.array(o, indent, depth)
		}
		return s.members(o, indent, depth)
	case *protocol.Array:
		if properties {
			return s.members(o, indent, depth)
		}
		kinds := make([]string, len(kind.Items))
		for i, k := range kind.Items {
			name, _ := k.(string)
			kinds[i] = simple(name)
		}
		return strings.Join(kinds, " | ")
	}
	if properties {
		return s.members(o, indent, depth)
	}
	return "unknown"
}

// simple is a type by its name alone.
func simple(kind string) string {
	switch kind {
	case "string", "boolean", "null", "number":
		return kind
	case "integer":
		return "number"
	case "array":
		return "unknown[]"
	case "object":
		return "Record<string, unknown>"
	}
	return "unknown"
}

func (s *schemaTypes) joined(schemas any, operator, indent string, depth int) string {
	list, _ := schemas.(*protocol.Array)
	if list == nil || len(list.Items) == 0 {
		return "unknown"
	}
	var parts []string
	for _, item := range list.Items {
		parts = append(parts, s.of(item, indent, depth))
	}
	return strings.Join(parts, operator)
}

func (s *schemaTypes) array(o *protocol.Object, indent string, depth int) string {
	items, ok := member(o, "items")
	tuple, isTuple := items.(*protocol.Array)
	if prefix, found := member(o, "prefixItems"); found {
		if list, isList := prefix.(*protocol.Array); isList {
			tuple, isTuple = list, true
		}
	}
	switch {
	case isTuple && len(tuple.Items) == 0:
		return "[]"
	case isTuple:
		return "[" + s.joined(tuple, ", ", indent, depth) + "]"
	case !ok || items == false:
		return "unknown[]"
	}
	return s.of(items, indent, depth) + "[]"
}

func (s *schemaTypes) members(o *protocol.Object, indent string, depth int) string {
	var b strings.Builder
	required, _ := member(o, "required")
	names, _ := required.(*protocol.Array)
	inner := indent + "    "
	if value, _ := member(o, "properties"); value != nil {
		properties, _ := value.(*protocol.Object)
		for _, p := range membersOf(properties) {
			optional := "?"
			if names != nil && slices.Contains(names.Items, any(p.Key)) {
				optional = ""
			}
			b.WriteString(propertyComment(p.Value, inner))
			fmt.Fprintf(&b, "%s%s%s: %s;\n", inner, quotedKey(p.Key), optional, s.of(p.Value, inner, depth))
			if b.Len() > maxTypeBytes {
				s.left = -1
				break
			}
		}
	}
	more, _ := member(o, "additionalProperties")
	if _, isSchema := more.(*protocol.Object); isSchema || more == true {
		fmt.Fprintf(&b, "%s[key: string]: %s;\n", inner, s.of(more, inner, depth))
	}
	switch {
	case b.Len() > 0:
		return "{\n" + b.String() + indent + "}"
	case more == false:
		return "{}"
	}
	return "Record<string, unknown>"
}

func membersOf(o *protocol.Object) []protocol.Member {
	if o == nil {
		return nil
	}
	return o.Members
}

// propertyComment says what a property is for and of which format, if its schema does.
func propertyComment(schema any, indent string) string {
	o, _ := schema.(*protocol.Object)
	if o == nil {
		return ""
	}
	text, format := comment(stringMember(o, "description")), comment(stringMember(o, "format"))
	switch {
	case text == "" && format == "":
		return ""
	case format == "":
		return indent + "/** " + text + " */\n"
	case text == "":
		return indent + "/** @format " + format + " */\n"
	}
	return indent + "/**\n" + indent + " * " + text + "\n" + indent + " * @format " + format + "\n" + indent + " */\n"
}

func quotedKey(key string) string {
	if isIdentifier(key) {
		return key
	}
	return scriptString(key)
}

// scriptString is a string literal of TypeScript on one line.
func scriptString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, string(utf8.RuneError)) {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f || isLineEnd(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func literals(values any) string {
	list, _ := values.(*protocol.Array)
	switch {
	case list == nil:
		return "unknown"
	case len(list.Items) == 0:
		return "never"
	}
	var parts []string
	for _, v := range list.Items {
		parts = append(parts, literal(v))
	}
	return strings.Join(parts, " | ")
}

func literal(v any) string {
	switch v := v.(type) {
	case string:
		return scriptString(v)
	case protocol.UTF16:
		return scriptString(v.String())
	}
	return string(jsonText(v))
}

// resolve follows a reference inside the schema; nil where it leads nowhere, or elsewhere.
func (s *schemaTypes) resolve(ref string) any {
	if s.root == nil || ref != "#" && !strings.HasPrefix(ref, "#/") {
		return nil
	}
	var at any = s.root
	for _, key := range strings.Split(ref, "/")[1:] {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		switch container := at.(type) {
		case *protocol.Object:
			at, _ = member(container, key)
		case *protocol.Array:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(container.Items) {
				return nil
			}
			at = container.Items[i]
		default:
			return nil
		}
	}
	return at
}
