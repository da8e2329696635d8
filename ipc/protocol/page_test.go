package protocol

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/pagetest"
)

var update = flag.Bool("update", false, "write the tables of docs/protocol.md")

const page = "../../docs/protocol.md"

// The tables of the page are what the code says.
func TestProtocolPage(t *testing.T) {
	pagetest.Part(t, page, "errors", errorTable(t), *update)
	pagetest.Part(t, page, "values", valueTable(t), *update)
	pagetest.Part(t, page, "sizes", sizeTable(t), *update)
}

// Every method, and every member of the params of execute, is on the page.
func TestProtocolPageHasEveryName(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range constants(t) {
		if strings.HasPrefix(c.name, "Method") && !bytes.Contains(text, []byte("`"+c.text(t)+"`")) {
			t.Errorf("%s: the page says nothing of %s", c.name, c.text(t))
		}
	}
	for _, name := range executeMembers(t) {
		if !bytes.Contains(text, []byte("\n| `"+name+"` |")) {
			t.Errorf("the table of execute has no row for %s", name)
		}
	}
}

// executeMembers are the names of Execute on the wire.
func executeMembers(t *testing.T) (names []string) {
	text, err := os.ReadFile("execute.go")
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(text), "type Execute struct {")
	fields, _, _ = strings.Cut(fields, "\n}")
	for _, m := range regexp.MustCompile(`json:"(\w+)`).FindAllStringSubmatch(fields, -1) {
		names = append(names, m[1])
	}
	if len(names) < 12 {
		t.Fatalf("found only %q", names)
	}
	return names
}

// declared is a constant of the package, with the comment on its line.
type declared struct {
	name, typ, comment string
	value              ast.Expr
}

// text is the value of a string.
func (d declared) text(t *testing.T) string {
	s, err := strconv.Unquote(d.value.(*ast.BasicLit).Value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// constants are the exported constants of the package, in the order of its files.
func constants(t *testing.T) (list []declared) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			group, is := d.(*ast.GenDecl)
			if !is || group.Tok != token.CONST {
				continue
			}
			for _, s := range group.Specs {
				spec := s.(*ast.ValueSpec)
				if spec.Names[0].IsExported() && len(spec.Values) == 1 {
					typ, _ := spec.Type.(*ast.Ident)
					c := declared{name: spec.Names[0].Name, comment: strings.TrimSpace(spec.Comment.Text()), value: spec.Values[0]}
					if typ != nil {
						c.typ = typ.Name
					}
					list = append(list, c)
				}
			}
		}
	}
	return list
}

// errorTable is the taxonomy, in the words of the comments in errors.go.
func errorTable(t *testing.T) string {
	words := map[Type]string{}
	for _, c := range constants(t) {
		if c.typ == "Type" {
			words[Type(c.text(t))] = c.comment
		}
	}
	fields := regexp.MustCompile(`\b(` + strings.Join(LimitNames(), "|") + `|retryAfterMs)\b`)
	var rows [][]string
	for _, i := range Types() {
		if words[i.Type] == "" {
			t.Errorf("errors.go: %s has no comment that says what it means", i.Type)
		}
		ran, retry := "no", ""
		if i.Ran {
			ran = "yes"
		}
		if i.Retryable {
			retry = "yes"
		}
		rows = append(rows, []string{"`" + string(i.Type) + "`", strconv.Itoa(i.Code), ran, retry, strconv.Itoa(i.Exit), fields.ReplaceAllString(words[i.Type], "`$1`")})
	}
	return pagetest.Table([]string{"type", "code", "ran", "retry", "exit status of executorctl", ""}, rows)
}

var (
	tagRow  = regexp.MustCompile(`(?m)^//\t(\S.*?) {2,}(\S.*)$`)
	tagName = regexp.MustCompile(`@\w+`)
)

// valueTable is the table in codec.go, with the first vector for each tag as an example. No tag is without a row, and no
// row is without a vector.
func valueTable(t *testing.T) string {
	source, err := os.ReadFile("codec.go")
	if err != nil {
		t.Fatal(err)
	}
	examples := examplesOfTags(t)
	seen := map[string]bool{}
	var rows [][]string
	for _, m := range tagRow.FindAllStringSubmatch(string(source), -1) {
		shown := []string{}
		for _, tag := range tagName.FindAllString(strings.ReplaceAll(m[2], `{"@bytes":base64}}`, ""), -1) {
			if !seen[tag] && examples[tag] != "" {
				shown = append(shown, "`"+examples[tag]+"`")
			} else if !seen[tag] {
				t.Errorf("no vector has the tag %s", tag)
			}
			seen[tag] = true
		}
		rows = append(rows, []string{m[1], words(m[2]), strings.Join(shown, "; ")})
	}
	for tag := range examples {
		if !seen[tag] {
			t.Errorf("codec.go: the table of tags has no %s", tag)
		}
	}
	return pagetest.Table([]string{"value", "encoding", "as"}, rows)
}

// words sets the JSON of a row of the table apart from its words.
func words(encoding string) string {
	if !strings.Contains(encoding, "{") {
		return encoding
	}
	return "`" + encoding + "`"
}

// examplesOfTags is the first vector for each tag that has one as its whole value, else inside it.
func examplesOfTags(t *testing.T) map[string]string {
	whole, inside := map[string]string{}, map[string]string{}
	for _, v := range vectors(t) {
		if v.Value == nil || len(v.Value) > 120 {
			continue
		}
		var members map[string]json.RawMessage
		_ = json.Unmarshal(v.Value, &members)
		text := string(v.Value)
		if v.JS != "" {
			text = v.JS + " → " + text
		}
		for _, tag := range regexp.MustCompile(`\{"(@\w+)":`).FindAllStringSubmatch(string(v.Value), -1) {
			if _, is := members[tag[1]]; is && len(members) == 1 {
				setFirst(whole, tag[1], text)
			} else if members["@object"] == nil { // which tells that it is none
				setFirst(inside, tag[1], text)
			}
		}
	}
	for tag := range decodable(t) {
		setFirst(whole, tag, inside[tag])
	}
	maps.DeleteFunc(whole, func(tag, _ string) bool { return !decodable(t)[tag] })
	return whole
}

func setFirst(m map[string]string, key, value string) {
	if m[key] == "" {
		m[key] = value
	}
}

// decodable are the tags that the decoder of this package knows, by the strings of its source.
func decodable(t *testing.T) map[string]bool {
	tags := map[string]bool{}
	files, err := filepath.Glob("codec_*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`"(@[a-z0-9]+)"`).FindAllSubmatch(text, -1) {
			tags[string(m[1])] = true
		}
	}
	return tags
}

// sizes words the constants that begin with Max.
var sizes = []struct{ name, words string }{
	{"MaxIDBytes", "id of a request, in bytes"},
	{"MaxMethodBytes", "method, in bytes"},
	{"MaxExecutionBytes", "`execution`, in bytes"},
	{"MaxCodeBytes", "`code`, and the source of each module, in bytes"},
	{"MaxNameBytes", "`name`, in bytes"},
	{"MaxProviders", "providers"},
	{"MaxProviderNameRunes", "name of a provider, in code points"},
	{"MaxTools", "tools of one provider"},
	{"MaxToolPath", "names in the path of a tool"},
	{"MaxToolNameBytes", "each of them, in bytes"},
	{"MaxModules", "modules"},
	{"MaxSpecifierBytes", "specifier of a module, in bytes"},
	{"MaxTraceBytes", "each member of `trace`, in bytes"},
	{"MaxLimit", "each number of `limits`"},
	{"MaxDepth", "nesting of any text that is parsed"},
	{"MaxValueDepth", "nesting of a Value, tags included"},
	{"MaxValueParts", "objects and primitives in a Value"},
	{"MaxBigIntBits", "BigInt, in bits"},
	{"MaxURLBytes", "URL of a `fetch`, in bytes"},
	{"MaxVerbBytes", "its method, in bytes"},
	{"MaxHeaders", "headers of one request or response"},
	{"MaxHeaderBytes", "their names and values together, in bytes"},
	{"MaxHandleBytes", "id of a handle, in bytes"},
	{"MaxArgs", "`args` of a `handle.invoke`"},
	{"MaxReleased", "ids in one `handle.release`"},
	{"MaxReasonBytes", "`statusText`, in bytes"},
}

func sizeTable(t *testing.T) string {
	values := map[string]string{}
	for _, c := range constants(t) {
		if !strings.HasPrefix(c.name, "Max") {
			continue
		}
		value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, types.ExprString(c.value))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		values[c.name] = value.Value.ExactString()
	}
	var rows [][]string
	for _, size := range sizes {
		if values[size.name] == "" {
			t.Errorf("there is no %s", size.name)
		}
		rows = append(rows, []string{size.words, values[size.name]})
		delete(values, size.name)
	}
	for name := range values {
		t.Errorf("%s has no words in this test", name)
	}
	return pagetest.Table([]string{"", "at most"}, rows)
}
