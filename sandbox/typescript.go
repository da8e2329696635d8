package sandbox

import (
	"encoding/json"
	"fmt"
	"unicode/utf16"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/sandbox/entry"
	"github.com/executord/executord/sandbox/sourcemap"
)

// maxTypeScript bounds one TypeScript text: erasing its types cannot be interrupted and needs many times its size.
const maxTypeScript = 2 << 20

// erased is a TypeScript module as JavaScript.
type erased struct {
	code string
	from *sourcemap.Map
	plan *entry.Program // places in the module's text to places in the submitted one
}

// locate returns the place in the submitted text.
func (e *erased) locate(line, column int) (int, int) { return e.plan.Map(e.from.Locate(line, column)) }

// erase takes the types out of a module that the analyzer has read as a whole. It is called on the goroutine of the
// loop; a text that keeps it busy past a clock is ended by the watchdog, with the process.
func erase(file string, plan *entry.Program) (*erased, error) {
	if len(plan.Source) > maxTypeScript {
		return nil, protocol.Errorf(protocol.Syntax, "%s is too large: TypeScript may have %d KiB", file, maxTypeScript>>10)
	}
	result := api.Transform(plan.Source, api.TransformOptions{
		Loader: api.LoaderTS, Sourcefile: file, Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude,
		Target: api.ESNext, Supported: map[string]bool{"decorators": false}, // V8 13.6 has none
		Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsInline, LogLevel: api.LogLevelSilent,
	})
	if len(result.Errors) > 0 {
		return nil, syntaxFault(file, plan, result.Errors[0])
	}
	m, err := sourcemap.Parse(result.Map)
	if err != nil {
		return nil, err
	}
	return &erased{string(result.Code), m, plan}, nil
}

func syntaxFault(file string, plan *entry.Program, m api.Message) *protocol.Error {
	line, column := 1, 1
	if m.Location != nil {
		line = m.Location.Line
		column = len(utf16.Encode([]rune(m.Location.LineText[:min(m.Location.Column, len(m.Location.LineText))]))) + 1
	}
	line, column = plan.Map(line, column)
	e := plan.SyntaxError(m.Text, line, column)
	e.Position.File = file
	return e
}

// eraseModule is erase for a module of the request.
func eraseModule(analyze entry.Analyze, key, code string) (*erased, error) {
	plan, err := entry.PlanTypeScript(analyze, code, protocol.FormModule)
	if err != nil {
		return nil, err
	}
	return erase(key, plan)
}

// fault is why a module of the request cannot be read. Its text is what a program sees that imports the module.
type fault struct{ typed *protocol.Error }

func (f *fault) Error() string {
	return fmt.Sprintf("cannot read module %q: %s at line %d, column %d", f.typed.Position.File, f.typed.Message, f.typed.Position.Line, f.typed.Position.Column)
}

func moduleFault(key string, err error) error {
	e := protocol.AsError(err)
	if e.Position == nil {
		return fmt.Errorf("cannot read module %q: %s", key, e.Message)
	}
	e.Position.File = key
	return &fault{e}
}

// useAnalyzer lets the modules of the execution be read by the analyzer, when they are first wanted.
func (e *execution) useAnalyzer(analyze entry.Analyze) {
	e.erased = map[string]*erased{}
	e.modules.exports = func(code string) (*commonExports, error) {
		text, err := analyze(code, "commonjs")
		if err != nil {
			return nil, err
		}
		var found commonExports
		return &found, json.Unmarshal([]byte(text), &found)
	}
	e.modules.erase = func(key, code string) (string, error) {
		t, err := eraseModule(analyze, key, code)
		if err != nil {
			err = moduleFault(key, err)
			e.modules.fault = err
			return "", err
		}
		e.erased[key] = t
		return t.code, nil
	}
}

// javascript is what the engine is to run of the submitted text.
func (e *execution) javascript() (string, error) {
	if protocol.Language(e.request.Language) != protocol.TypeScript {
		return e.program.Source, nil
	}
	t, err := erase(e.request.Name, e.program)
	if err != nil {
		return "", err
	}
	e.erased[e.request.Name] = t
	return t.code, nil
}
