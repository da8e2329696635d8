package sandbox_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// codemodeRow is one line of codemodeCorpus.
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
	webValues    = "the web's objects that a structured clone copies cross as themselves"
	ofTheClass   = "an error keeps its own properties; a DOMException's code is its class's"
	itIsHere     = "the sandbox has what the reference lacks"
	ownName      = "the sandbox has a name of its own"
	noSharing    = "there is no SharedArrayBuffer: there is no second thread to share it with"
)

// codemodeDiffers names the rows that this product answers otherwise, with the reason. One that it comes to answer alike
// fails its test until it is taken off.
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
	"result-url":                                 webValues,
	"result-dom-exception":                       ofTheClass,
	"async-message-channel":                      itIsHere,
	"web-url-bad":                                ownWords,
	"web-navigator":                              ownName,
}

// codemodeCorpus has programs for an executor of the @cloudflare/codemode dialect with the answers of its reference; its
// first line says how to read it.
const codemodeCorpus = "../packaging/npm/test/differential/corpus.jsonl"

// codemodeGroups are those that need no more of the dialect than its few tools. The npm package's tests run all.
var codemodeGroups = []string{"async", "console", "error", "lang", "module", "result", "web"}

// TestCodemodePrograms runs the rows of codemodeGroups as they are, with form auto, and compares value or error message,
// console lines and calls.
func TestCodemodePrograms(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	f, err := os.Open(codemodeCorpus)
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
		if !slices.Contains(codemodeGroups, row.Group) {
			continue
		}
		ran++
		t.Run(row.ID, func(t *testing.T) {
			faults := row.judge(t, p)
			reason, differs := codemodeDiffers[row.ID]
			switch {
			case differs && len(faults) == 0:
				t.Errorf("passes, and is said to differ because %s: take it off the list", reason)
			case !differs:
				for _, fault := range faults {
					t.Error(row.Code + "\n" + fault)
				}
			}
		})
	}
	if ran < 240 {
		t.Errorf("only %d rows ran", ran)
	}
}

// judge runs the row by the corpus's rules and tells what is otherwise than the reference has it.
func (row *codemodeRow) judge(t *testing.T, p *proc) (faults []string) {
	t.Helper()
	var modules []worker.Module
	for name, source := range row.Modules {
		modules = append(modules, worker.Module{Specifier: name, Type: "module", Source: []byte(source)})
	}
	calls := []any{}
	limits := func(l *worker.Limits) { l.LogLines, l.CPU, l.Wall = 5000, 2*time.Second, 3*time.Second }
	e := p.run(job{code: row.Code, modules: modules, providers: []worker.Provider{{Name: "codemode", All: true}}, limits: limits, answer: func(c worker.ToolCall) (worker.ToolResult, bool) {
		args := decoded(t, c.Args)
		calls = append(calls, []any{"codemode." + c.Path[0], args})
		return codemodeTool(c, args), true
	}})
	compare := func(what string, got, want any) {
		if a, b := marshal(got), marshal(want); a != b {
			faults = append(faults, fmt.Sprintf("%s: got %.400s, want %.400s", what, a, b))
		}
	}
	switch {
	case row.Expect.Outcome == "ok" && e.err != nil, row.Expect.Outcome != "ok" && e.err == nil:
		faults = append(faults, fmt.Sprintf("got %s, want %s %v %v", textOf(e), row.Expect.Outcome, row.Expect.Result, row.Expect.Error))
	case e.err == nil:
		compare("result", decoded(t, e.result.Value), row.Expect.Result)
	case row.Expect.Outcome == "error":
		compare("error", canonText(e.err.Message), row.Expect.Error)
	}
	if row.Expect.Logs != nil {
		compare("logs", canonLogs(e.logs), row.Expect.Logs)
	}
	compare("calls", calls, row.Expect.Calls)
	return faults
}

func marshal(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
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
