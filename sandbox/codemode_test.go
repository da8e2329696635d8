package sandbox_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// codemodeRow is one line of testdata/codemode.jsonl.
type codemodeRow struct {
	ID, Group, Level, Code string
	Modules                map[string]string
	Expect                 struct {
		Outcome string
		Result  any
		Error   any
		Logs    any
		Calls   any
	}
}

// Reasons why this product answers otherwise than the reference of the dialect.
const (
	consoleText  = "the console shows values as the WHATWG standard and Node do, not by String()"
	allLevels    = "every level of the console is a log line"
	functions    = "a function in a result is an error that names its path, unless the execution is retained"
	wholeValue   = "errors keep their name, own properties and nested errors"
	plainObjects = "own data of any object is a value"
	noHang       = "a program that cannot settle ends as deadlock, and one that replaces Promise.prototype.then ends"
	anyThrow     = "throwing anything is an exception, an empty message included"
	thrownWhole  = "a thrown object that is no Error is kept whole; the dialect keeps its message only"
	noNode       = "Node's names are not here"
	ownWords     = "same outcome in other words, which name what to use instead"
	notDialect   = "a name or a rule of the reference's own; a module that is not imported is not read"
	lifted       = "a script may import statically"
	noTampering  = "a program that replaces JSON or toJSON does not change what tools and callers get"
	codeAllowed  = "code from strings and WebAssembly is allowed inside the program's limits (ECMA-429)"
	htmlTimers   = "a timer may be given a string (HTML)"
	noSharing    = "there is no SharedArrayBuffer: there is no second thread to share it with"
	inLibrary    = "judged by the tests of the standard library, which the row needs"
)

// codemodeDiffers names the rows that do not apply, with the reason.
var codemodeDiffers = map[string]string{
	"console-objects":                            consoleText,
	"console-symbol-bigint":                      consoleText,
	"console-format-specifiers":                  consoleText,
	"console-null-proto":                         consoleText,
	"console-tostring-throws":                    consoleText,
	"console-tostring-used":                      consoleText,
	"console-promise":                            consoleText,
	"console-mutate-after":                       consoleText,
	"console-table-group":                        consoleText,
	"console-sparse-array":                       consoleText,
	"console-info-debug":                         allLevels,
	"result-function":                            functions,
	"result-function-in-object":                  functions,
	"result-class-value":                         functions,
	"result-own-tojson":                          functions,
	"result-error-with-function":                 functions,
	"result-unserializable-function-prop-nested": functions,
	"result-error-props":                         wholeValue,
	"result-aggregate-error":                     wholeValue,
	"result-subclass-error":                      wholeValue,
	"result-class-instance":                      plainObjects,
	"result-class-instance-nested":               plainObjects,
	"result-iterator":                            plainObjects,
	"result-url":                                 plainObjects,
	"result-abort-signal":                        plainObjects,
	"lang-group-by-raw":                          plainObjects,
	"result-thenable-never":                      noHang,
	"lang-tamper-promise":                        noHang,
	"error-empty-message":                        anyThrow,
	"error-no-message":                           anyThrow,
	"error-throw-string":                         anyThrow,
	"error-throw-symbol":                         anyThrow,
	"error-throw-bigint":                         anyThrow,
	"error-throw-object-message":                 thrownWhole,
	"error-throw-object-message-number":          thrownWhole,
	"error-throw-object-message-object":          thrownWhole,
	"error-message-getter":                       thrownWhole,
	"async-set-immediate":                        noNode,
	"module-import-node-child":                   noNode,
	"module-import-missing-uncaught":             ownWords,
	"module-import-node-fs-read":                 ownWords,
	"module-import-executor":                     notDialect,
	"module-import-cloudflare-workers":           notDialect,
	"module-module-syntax-error-unused":          notDialect,
	"module-static-import":                       lifted,
	"lang-tamper-json":                           noTampering,
	"lang-tamper-array-proto-tojson":             noTampering,
	"lang-eval":                                  codeAllowed,
	"lang-indirect-function":                     codeAllowed,
	"lang-wasm-sync":                             codeAllowed,
	"lang-settimeout-string":                     htmlTimers,
	"lang-atomics":                               noSharing,
	"result-headers":                             inLibrary,
	"result-response":                            inLibrary,
	"result-request":                             inLibrary,
	"result-dom-exception":                       inLibrary,
	"async-performance-now":                      inLibrary,
	"async-structured-clone":                     inLibrary,
	"async-structured-clone-fn":                  inLibrary,
	"lang-math-sumprecise":                       inLibrary,
	"async-message-channel":                      inLibrary,
	"error-dom-exception":                        inLibrary,
}

func TestCodemodePrograms(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	f, err := os.Open("testdata/codemode.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	ran := 0
	for lines.Scan() {
		var row codemodeRow
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if reason := codemodeDiffers[row.ID]; reason != "" {
			continue
		}
		ran++
		t.Run(row.ID, func(t *testing.T) { row.judge(t, p) })
	}
	if ran < 130 {
		t.Errorf("only %d rows ran", ran)
	}
}

func (row *codemodeRow) judge(t *testing.T, p *proc) {
	var modules []worker.Module
	for name, source := range row.Modules {
		modules = append(modules, worker.Module{Specifier: name, Type: "module", Source: []byte(source)})
	}
	calls := []any{}
	e := p.run(job{code: row.Code, modules: modules, providers: []worker.Provider{{Name: "codemode", All: true}}, limits: func(l *worker.Limits) { l.LogLines = 5000 }, answer: func(c worker.ToolCall) (worker.ToolResult, bool) {
		args := decoded(t, c.Args)
		calls = append(calls, []any{"codemode." + c.Path[0], args})
		return codemodeTool(c, args), true
	}})
	switch {
	case row.Expect.Outcome == "ok" && e.err != nil, row.Expect.Outcome != "ok" && e.err == nil:
		t.Fatalf("%s\ngot %s, want %s %v %v", row.Code, textOf(e), row.Expect.Outcome, row.Expect.Result, row.Expect.Error)
	case e.err == nil:
		same(t, row.Code, decoded(t, e.result.Value), row.Expect.Result)
	case row.Expect.Outcome == "error":
		same(t, row.Code, canonText(e.err.Message), row.Expect.Error)
	}
	if row.Expect.Logs != nil {
		same(t, row.Code+" logs", canonLogs(e.logs), row.Expect.Logs)
	}
	same(t, row.Code+" calls", calls, row.Expect.Calls)
}

// codemodeTool is as much of the dialect's fixed tools as the rows use.
func codemodeTool(c worker.ToolCall, args any) worker.ToolResult {
	list := args.([]any)
	var raw []json.RawMessage
	_ = json.Unmarshal(c.Args, &raw)
	switch c.Path[0] {
	case "slow":
		o, _ := list[0].(map[string]any)
		ms, _ := o["ms"].(float64)
		time.Sleep(time.Duration(ms) * time.Millisecond)
		var given struct{ Value json.RawMessage }
		_ = json.Unmarshal(raw[0], &given)
		if given.Value == nil {
			given.Value = []byte(`"slow"`)
		}
		return worker.ToolResult{OK: true, Value: given.Value}
	case "args":
		text, _ := json.Marshal(map[string]any{"count": len(raw), "args": raw})
		return worker.ToolResult{OK: true, Value: text}
	case "echo":
		return worker.ToolResult{OK: true, Value: raw[0]}
	}
	return worker.ToolResult{Value: []byte(`{"message":"there is no such tool"}`)}
}

// canonLogs writes log lines as the dialect does: it knows three levels, and nothing of what the service adds.
func canonLogs(lines []string) any {
	texts := []any{}
	var plain []string
	for _, line := range lines {
		level, text, _ := strings.Cut(line, " ")
		added := strings.HasPrefix(text, "Uncaught ") || strings.HasPrefix(text, "Unhandled rejection: ") || strings.Contains(text, "still running when the program ended")
		switch protocol.Level(level) {
		case protocol.LevelWarn, protocol.LevelError:
			text = "[" + level + "] " + text
		case protocol.LevelLog:
		default:
			continue
		}
		if !added {
			texts = append(texts, canonText(text))
			plain = append(plain, text)
		}
	}
	if n := len(texts); n > 300 {
		return map[string]any{"$t": "logs", "n": float64(n), "fnv": fnvOf(strings.Join(plain, "\n")), "first": texts[:3], "last": texts[n-3:]}
	}
	return texts
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("%s\ngot  %.400s\nwant %.400s", what, a, b)
	}
}
