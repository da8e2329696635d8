package admin

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/ipc/protocol"
)

var update = flag.Bool("update", false, "write openapi.json as it should be")

// TestOpenAPIDocument: the document that is served is the one that the table and the structs make.
func TestOpenAPIDocument(t *testing.T) {
	want := append(document(t), '\n')
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(openapiText, want) {
		t.Error("openapi.json is not what the table says: run go test ./daemon/admin -run OpenAPI -update, and read the diff")
	}
	doc, err := openapi3.NewLoader().LoadFromData(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	n := 0
	for _, item := range doc.Paths.Map() {
		n += len(item.Operations())
	}
	if n != len(api()) || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("%d operations of version %s for %d routes", n, doc.OpenAPI, len(api()))
	}
}

// api are the routes that the document describes.
func api() []Route {
	return slices.DeleteFunc(slices.Clone(routes), Route.forPeople)
}

// object is a JSON object.
type object = map[string]any

// writer makes the document.
type writer struct {
	t       *testing.T
	docs    map[string]string // of package.Type and package.Type.Field
	schemas object
	origin  map[string]reflect.Type
}

func document(t *testing.T) []byte {
	w := &writer{t: t, docs: map[string]string{}, schemas: object{}, origin: map[string]reflect.Type{}}
	for dir, one := range map[string]any{".": Status{}, "../settings": settings.Setting{}, "../events": events.Event{}, "../../ipc/protocol": protocol.Error{}} {
		w.readComments(dir, reflect.TypeOf(one).PkgPath())
	}
	paths := map[string]object{}
	for _, to := range api() {
		if paths[to.Path] == nil {
			paths[to.Path] = object{}
		}
		paths[to.Path][strings.ToLower(to.Method)] = w.operation(to)
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "executord admin", "version": "1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "The operator's interface of executord. It is served on a unix socket; who may use it is decided by the kernel's word on the peer.",
		},
		"servers":    []any{object{"url": "http://executord", "description": "over the admin socket"}},
		"paths":      paths,
		"components": object{"schemas": w.schemas},
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

func (w *writer) operation(to Route) object {
	words := strings.FieldsFunc(to.Command, func(r rune) bool { return r == ' ' || r == '-' })
	id := words[0]
	for _, word := range words[1:] {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	if to.Command == "log-level" && to.In != nil {
		id = "setLogLevel"
	}
	var parameters []any
	for _, m := range parameter.FindAllStringSubmatch(to.Path, -1) {
		parameters = append(parameters, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, q := range to.Query {
		p := object{"name": q.Name, "in": "query", "description": q.Summary, "schema": w.schema(reflect.TypeOf(q.Zero))}
		if reflect.TypeOf(q.Zero).Kind() == reflect.Slice {
			p["style"], p["explode"] = "form", false
		}
		parameters = append(parameters, p)
	}
	op := object{
		"operationId": id, "summary": to.Summary, "x-right": to.May, "x-command": "executorctl " + to.Command,
		"responses": object{
			"200":     object{"description": "It is done.", "content": w.content(to.Out)},
			"default": object{"description": "It cannot be done.", "content": w.content(Fault{})},
		},
	}
	if to.Out == eventStream {
		op["x-data"] = []any{w.schema(reflect.TypeFor[events.Event]()), w.schema(reflect.TypeFor[Missed]())}
	}
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if to.In != nil {
		op["requestBody"] = object{"content": w.content(to.In)}
	}
	return op
}

func (w *writer) content(zero any) object {
	if kind, is := zero.(Text); is {
		return object{string(kind): object{"schema": object{}}}
	}
	return object{"application/json": object{"schema": w.schema(reflect.TypeOf(zero))}}
}

// enums are the values of closed sets.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[events.Kind]():     list(events.Kinds()),
	reflect.TypeFor[settings.Source](): {settings.Flag, settings.Variable, settings.File, settings.Default},
	reflect.TypeFor[protocol.Level]():  {protocol.LevelDebug, protocol.LevelInfo, protocol.LevelLog, protocol.LevelWarn, protocol.LevelError},
	reflect.TypeFor[protocol.Type]():   types(),
}

func list[T any](values []T) (l []any) {
	for _, v := range values {
		l = append(l, v)
	}
	return l
}

func types() (l []any) {
	for _, info := range protocol.Types() {
		l = append(l, info.Type)
	}
	return l
}

func (w *writer) schema(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	case enums[t] != nil:
		return object{"type": "string", "enum": enums[t]}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.schema(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": w.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": w.schema(t.Elem())}
	case reflect.Struct:
		return object{"$ref": "#/components/schemas/" + w.structure(t)}
	}
	w.t.Fatalf("there is no schema for %s", t)
	return nil
}

// structure describes a struct once, and returns its name.
func (w *writer) structure(t reflect.Type) string {
	name := t.Name()
	if known := w.origin[name]; known != nil {
		if known != t {
			w.t.Fatalf("%s and %s have the same name", known, t)
		}
		return name
	}
	w.origin[name] = t
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" {
			w.t.Fatalf("%s.%s has no name in JSON", t, f.Name)
		}
		p := w.schema(f.Type)
		if text := w.docs[t.PkgPath()+"."+name+"."+f.Name]; text != "" {
			p["description"] = text
		}
		properties[key] = p
		if !strings.Contains(options, "omit") {
			required = append(required, key)
		}
	}
	s := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	if text := w.docs[t.PkgPath()+"."+name]; text != "" {
		s["description"] = text
	}
	w.schemas[name] = s
	return name
}

// readComments takes the descriptions from where they are written.
func (w *writer) readComments(dir, pkg string) {
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(files) == 0 {
		w.t.Fatalf("no source in %s: %v", dir, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if d, is := decl.(*ast.GenDecl); is && d.Tok == token.TYPE && !strings.HasSuffix(name, "_test.go") {
				for _, s := range d.Specs {
					w.readType(pkg, d, s.(*ast.TypeSpec))
				}
			}
		}
	}
}

func (w *writer) readType(pkg string, d *ast.GenDecl, s *ast.TypeSpec) {
	fields, is := s.Type.(*ast.StructType)
	if !is {
		return
	}
	if text := flat(d.Doc); text != "" {
		if _, rest, found := strings.Cut(text, " is "); found && strings.HasPrefix(text, s.Name.Name+" is ") {
			text = strings.ToUpper(rest[:1]) + rest[1:]
		}
		w.docs[pkg+"."+s.Name.Name] = text
	}
	for _, f := range fields.Fields.List {
		for _, name := range f.Names {
			text := flat(f.Comment)
			if text == "" {
				text = flat(f.Doc)
			}
			w.docs[fmt.Sprintf("%s.%s.%s", pkg, s.Name.Name, name)] = text
		}
	}
}

func flat(g *ast.CommentGroup) string { return strings.Join(strings.Fields(g.Text()), " ") }
