//lint:file-ignore SA1019 logging is how clients of the versions of the protocol that are spoken here hear of lines

package codemcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	native "github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/testlog"
)

// asServer is the variable that makes the test binary an MCP server of its own, on standard input and output.
const asServer = "CODEMCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		_ = childServer().Run(context.Background(), &mcp.StdioTransport{})
		return
	}
	os.Exit(testbin.Main(m))
}

// childServer has tools for what only another process can do.
func childServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "child"}, nil)
	add(s, "pid", "Its process.", func(context.Context, map[string]any) (any, error) { return map[string]int{"pid": os.Getpid()}, nil })
	add(s, "die", "Ends the process.", func(context.Context, map[string]any) (any, error) { os.Exit(7); return nil, nil })
	add(s, "env", "A variable.", func(_ context.Context, in map[string]any) (any, error) {
		return map[string]string{"value": os.Getenv(in["name"].(string))}, nil
	})
	return s
}

// add gives a server a tool without a schema of its answer.
func add(s *mcp.Server, name, description string, f func(context.Context, map[string]any) (any, error), more ...func(*mcp.Tool)) {
	t := &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)}
	for _, change := range more {
		change(t)
	}
	s.AddTool(t, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		in := map[string]any{}
		if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
			return nil, err
		}
		answer, err := f(ctx, in)
		if err != nil {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, nil
		}
		if result, ok := answer.(*mcp.CallToolResult); ok {
			return result, nil
		}
		return &mcp.CallToolResult{StructuredContent: answer, Content: []mcp.Content{}}, nil
	})
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func workers(t *testing.T) executor.Executor {
	t.Helper()
	e, err := native.New(t.Context(), native.Config{WorkerBinary: testbin.Worker(t), Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// said is what a client heard.
type said struct {
	mu       sync.Mutex
	asked    []string
	lines    []string
	progress []string
	changes  chan bool
}

func (s *said) add(list *[]string, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, text)
}

func (s *said) all(list *[]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), *list...)
}

// client is a real client of a Server with these servers behind it, by name. answer is what its user says when asked; empty
// for a client that cannot ask.
func client(t *testing.T, o Options, answer string, behind map[string]*mcp.Server) (*mcp.ClientSession, *said) {
	t.Helper()
	if o.Native == nil {
		o.Native = workers(t)
	}
	if o.Config.Servers == nil {
		o.Config.Servers = map[string]ServerConfig{}
	}
	for name := range behind {
		if _, ok := o.Config.Servers[name]; !ok {
			o.Config.Servers[name] = ServerConfig{Command: "in-process"}
		}
	}
	stderr := &testlog.Buffer{}
	o.Stderr, o.Version = stderr, "test"
	o.Transport = func(name string, c ServerConfig) (mcp.Transport, error) {
		s, ok := behind[name]
		if !ok {
			return transportOf(c, stderr)
		}
		ours, theirs := mcp.NewInMemoryTransports()
		_, err := s.Connect(context.Background(), theirs, nil)
		return ours, err
	}
	heard := &said{changes: make(chan bool, 10)}
	options := &mcp.ClientOptions{
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			heard.add(&heard.lines, fmt.Sprint(r.Params.Level, ": ", r.Params.Data))
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			heard.add(&heard.progress, fmt.Sprint(r.Params.Progress, ": ", r.Params.Message))
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { heard.changes <- true },
	}
	if answer != "" {
		options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			heard.add(&heard.asked, r.Params.Message)
			return &mcp.ElicitResult{Action: answer}, nil
		}
	}
	ours, theirs := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- New(o).Run(ctx, theirs) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, options).Connect(ctx, ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the server ended with %v", err)
		}
		cancel()
		if t.Failed() {
			t.Logf("stderr:\n%s", stderr.String())
		}
	})
	return session, heard
}

// run runs a program, and gives the texts and the type of the error.
func run(t *testing.T, c *mcp.ClientSession, code string) (texts []string, kind string) {
	t.Helper()
	params := &mcp.CallToolParams{Name: "code", Arguments: map[string]string{"code": code}}
	params.SetProgressToken("p")
	r, err := c.CallTool(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range r.Content {
		texts = append(texts, part.(*mcp.TextContent).Text)
	}
	var structured struct {
		Error struct{ Type string }
	}
	plain, _ := json.Marshal(r.StructuredContent)
	_ = json.Unmarshal(plain, &structured)
	if r.IsError != (structured.Error.Type != "") {
		t.Errorf("isError is %t, with %s", r.IsError, plain)
	}
	return texts, structured.Error.Type
}

// want runs a program that answers one text.
func want(t *testing.T, c *mcp.ClientSession, code, text string) {
	t.Helper()
	if texts, _ := run(t, c, code); len(texts) != 1 || texts[0] != text {
		t.Errorf("%s gives %q, want %q", code, texts, text)
	}
}

func description(t *testing.T, c *mcp.ClientSession) string {
	t.Helper()
	list, err := c.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "code" {
		t.Fatalf("tools %v, %v", list, err)
	}
	return list.Tools[0].Description
}

func filesServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "files"}, nil)
	yes, no := true, false
	add(s, "read-file", "Reads a file.", func(_ context.Context, in map[string]any) (any, error) {
		if in["path"] == "none" {
			return nil, errors.New("no such file")
		}
		return map[string]any{"path": in["path"], "lines": 3}, nil
	}, func(t *mcp.Tool) {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"Where it is."}},"required":["path"]}`)
		t.OutputSchema = json.RawMessage(`{"type":"object","properties":{"lines":{"type":"integer"}}}`)
	})
	add(s, "remove", "Removes a file.", func(context.Context, map[string]any) (any, error) { return "removed", nil }, func(t *mcp.Tool) {
		t.Annotations = &mcp.ToolAnnotations{DestructiveHint: &yes}
	})
	add(s, "touch", "Touches a file.", func(context.Context, map[string]any) (any, error) { return "touched", nil }, func(t *mcp.Tool) {
		t.Annotations = &mcp.ToolAnnotations{DestructiveHint: &no}
	})
	add(s, "json", "JSON as text.", func(context.Context, map[string]any) (any, error) { return text(` {"@a": [1]} `), nil })
	add(s, "words", "Text.", func(context.Context, map[string]any) (any, error) { return text("two words"), nil })
	add(s, "image", "An image.", func(context.Context, map[string]any) (any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"}}}, nil
	})
	return s
}

func TestProgramsCallTheToolsOfServers(t *testing.T) {
	c, heard := client(t, Options{}, "accept", map[string]*mcp.Server{"my-files": filesServer()})
	for _, part := range []string{"declare const my_files: {", "type My_filesReadFileInput = {", "/** Where it is. */", "read_file: (input: My_filesReadFileInput) => Promise<My_filesReadFileOutput>;"} {
		if !strings.Contains(description(t, c), part) {
			t.Errorf("the description has no %s:\n%s", part, description(t, c))
		}
	}
	want(t, c, `const f = await my_files.read_file({path: "a"}); f.lines`, "3")
	want(t, c, `async () => my_files.read_file({path: "none"}).catch((e) => e.message)`, "no such file")
	want(t, c, `[await my_files.json(), await my_files.words({})]`, "[\n  {\n    \"@a\": [\n      1\n    ]\n  },\n  \"two words\"\n]")
	want(t, c, `(await my_files.image()).content[0].mimeType`, "image/png")
	want(t, c, `my_files.read_file([1]).catch((e) => e.message)`, "a tool takes one object")
	want(t, c, `my_files.__proto__({}).catch((e) => e.message)`, `Tool "__proto__" not found`)
	want(t, c, `(await codemode.search({query: "read lines"})).map((f) => f.tool)`, "[\n  \"my_files.read_file\"\n]")
	want(t, c, `(await codemode.describe("my_files.touch")).includes("Touches a file.")`, "true")
	want(t, c, `codemode.describe({tool: "x.y"}).catch((e) => e.message)`, "there is no tool x.y")
	want(t, c, `codemode.search().catch((e) => e.message)`, "it takes {query}, a text")
	want(t, c, `undefined`, "undefined")
	texts, kind := run(t, c, `console.log("a"); console.warn("b"); throw new TypeError("no")`)
	if kind != "exception" || len(texts) != 2 || texts[0] != "Error: no" || texts[1] != "Console output:\na\n[warn] b" {
		t.Errorf("%q, %s", texts, kind)
	}
	// The client handles notifications beside answers, and may be behind with them.
	lines := func() string { return strings.Join(heard.all(&heard.lines), "|") }
	for end := time.Now().Add(5 * time.Second); lines() != "info: a|warning: [warn] b"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("lines %q", lines())
		}
	}
	if got := heard.all(&heard.progress); len(got) < 5 || got[0] != "1: my_files.read_file" {
		t.Errorf("progress %q", got)
	}
	if len(heard.all(&heard.asked)) != 0 {
		t.Errorf("asked %q", heard.asked)
	}
}

func TestApprovals(t *testing.T) {
	for _, tc := range []struct {
		name, approve, answer, tool, want string
		asked                             int
	}{
		{"a destructive tool is asked about", ``, "accept", "remove", "removed", 1},
		{"no is no", ``, "decline", "remove", "files.remove was not approved", 1},
		{"so is a dialog that is closed", ``, "cancel", "remove", "files.remove was not approved", 1},
		{"a client that cannot ask", ``, "", "remove", "files.remove needs an approval, and the client cannot ask for one", 0},
		{"one that destroys nothing is called", ``, "decline", "touch", "touched", 0},
		{"always", `"always"`, "decline", "remove", "removed", 0},
		{"ask", `"ask"`, "decline", "touch", "files.touch was not approved", 1},
		{"never", `"never"`, "accept", "touch", `Tool "touch" not found`, 0},
		{"by tool", `{"touch":"never","*":"always"}`, "accept", "touch", `Tool "touch" not found`, 0},
		{"others than by tool", `{"touch":"never","*":"always"}`, "decline", "remove", "removed", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var a Approvals
			if tc.approve != "" {
				if err := json.Unmarshal([]byte(tc.approve), &a); err != nil {
					t.Fatal(err)
				}
			}
			o := Options{Config: Config{Servers: map[string]ServerConfig{"files": {Command: "x", Approve: a}}}}
			c, heard := client(t, o, tc.answer, map[string]*mcp.Server{"files": filesServer()})
			want(t, c, fmt.Sprintf(`files.%s({path: "secret"}).catch((e) => e.message)`, tc.tool), tc.want)
			asked := heard.all(&heard.asked)
			if len(asked) != tc.asked || tc.asked == 1 && !strings.Contains(asked[0], `"path": "secret"`) {
				t.Errorf("asked %q", asked)
			}
			if tc.want == `Tool "touch" not found` && strings.Contains(description(t, c), "touch:") {
				t.Error("the model is told of it")
			}
		})
	}
}

func TestOutputIsLimited(t *testing.T) {
	c, heard := client(t, Options{MaxText: 1000}, "", nil)
	texts, _ := run(t, c, `for (let i = 0; i < 1000; i++) console.log("line " + i + "x".repeat(5000)); return {a: "x".repeat(1e6), b: 5}`)
	if len(texts) != 2 || len(texts[0]) > 1000 || len(texts[1]) > maxLogText+1000 || !strings.Contains(texts[1], "lines are left out here") {
		t.Fatalf("%d texts of %d bytes", len(texts), len(strings.Join(texts, "")))
	}
	var back struct{ B int }
	if err := json.Unmarshal([]byte(texts[0]), &back); err != nil || back.B != 5 {
		t.Errorf("%v: %s", err, texts[0])
	}
	for _, line := range heard.all(&heard.lines) {
		if len(line) > maxLineBytes+100 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	if texts, kind := run(t, c, `10n`); kind != "result_unserializable" {
		t.Errorf("%q, %s", texts, kind)
	}
	if texts, kind := run(t, c, `const a = []; for (;;) a.push(new Array(1e5).fill(1.5))`); kind != "memory_limit" {
		t.Errorf("%q, %s", texts, kind)
	}
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "code", Arguments: map[string]int{"code": 5}})
	if err != nil || !r.IsError {
		t.Errorf("a number as code: %v, %v", r, err)
	}
}

func TestW6CancellingStopsTheProgramAndItsCalls(t *testing.T) {
	begun, ended := make(chan bool, 1), make(chan error, 1)
	s := mcp.NewServer(&mcp.Implementation{Name: "slow"}, nil)
	add(s, "wait", "Waits.", func(ctx context.Context, _ map[string]any) (any, error) {
		begun <- true
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	c, _ := client(t, Options{}, "", map[string]*mcp.Server{"slow": s})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "code", Arguments: map[string]string{"code": "await slow.wait()"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the tool was not cancelled")
	}
	want(t, c, "1", "1")
}

func TestTimeIsLimitedWithoutWaits(t *testing.T) {
	c, _ := client(t, Options{Timeout: 300 * time.Millisecond}, "", nil)
	if texts, kind := run(t, c, `console.log("kept"); for (;;);`); kind != "cpu_timeout" && kind != "wall_timeout" || texts[0] != "Error: Execution timed out" || texts[1] != "Console output:\nkept" {
		t.Errorf("%q, %s", texts, kind)
	}
}

func TestAServerInAnotherProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("EXECUTORD_TOKEN", "secret")
	child := ServerConfig{Command: self, Env: map[string]string{asServer: "1", "OWN": "mine"}}
	nobody := ServerConfig{Command: "/nowhere/none"}
	c, _ := client(t, Options{Config: Config{Servers: map[string]ServerConfig{"child": child, "nobody": nobody}}}, "", nil)
	want(t, c, `(await child.env({name: "OWN"})).value + (await child.env({name: "EXECUTORD_TOKEN"})).value`, "mine")
	if !strings.Contains(description(t, c), "nobody is not available now.") {
		t.Error("the model is not told that a server is missing")
	}
	first, _ := run(t, c, `(await child.pid()).pid`)
	want(t, c, `child.die().catch((e) => e.message)`, "the server child went away during the call")
	time.Sleep(restartPause) // it is not started again at once
	second, _ := run(t, c, `(await child.pid()).pid`)
	if first[0] == second[0] || len(second) != 1 {
		t.Errorf("process %s, and then %s", first, second)
	}
}

func TestAServerOverHTTP(t *testing.T) {
	behind := filesServer()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return behind }, nil)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer own" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer site.Close()
	c, _ := client(t, Options{Config: Config{Servers: map[string]ServerConfig{
		"files":    {URL: site.URL, Headers: map[string]string{"Authorization": "Bearer own"}},
		"stranger": {URL: site.URL},
	}}}, "", nil)
	want(t, c, `(await files.read_file({path: "a"})).lines`, "3")
	if !strings.Contains(description(t, c), "stranger is not available now.") {
		t.Error("a server that refuses is taken")
	}
}

func TestI2HostileServers(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "hostile"}, nil)
	for _, name := range []string{"__proto__", "constructor", "then", "toString", "a-b", "a.b", "delete"} {
		add(s, name, "*/ } evil()\u2028", func(context.Context, map[string]any) (any, error) { return name, nil })
	}
	many := `{"type":"object","properties":{"a":{}`
	for i := range 3000 {
		many += fmt.Sprintf(`,"p%d":{"type":"string","description":"%s"}`, i, strings.Repeat("x", 50))
	}
	add(s, "huge", strings.Repeat("long ", 100_000), func(context.Context, map[string]any) (any, error) { return strings.Repeat("x", 1<<20), nil },
		func(t *mcp.Tool) { t.InputSchema = json.RawMessage(many + "}}") })
	crowd := mcp.NewServer(&mcp.Implementation{Name: "crowd"}, nil)
	for i := range 1500 {
		add(crowd, fmt.Sprintf("tool_%d", i), "One of many.", func(context.Context, map[string]any) (any, error) { return i, nil })
	}
	c, _ := client(t, Options{}, "", map[string]*mcp.Server{"hostile": s, "crowd": crowd})
	d := description(t, c)
	if len(d) > maxTypes+maxList+4096 || !strings.Contains(d, "codemode.search") || !strings.Contains(d, "crowd has tools that programs cannot call.") {
		t.Errorf("the description has %d bytes: %.2000s", len(d), d)
	}
	want(t, c, `[await hostile.__proto__(), await hostile.constructor(), await hostile.toString(), await hostile.delete_(), typeof hostile.then].join()`, "__proto__,constructor,toString,delete,undefined")
	want(t, c, `hostile.a_b()`, "a-b")
	want(t, c, `(await hostile.huge()).length`, "1048576")
	want(t, c, `(await codemode.describe("hostile.huge")).length < 50000`, "true")
	want(t, c, `crowd.tool_1000()`, "1000")
	want(t, c, `crowd.tool_999().catch((e) => e.message)`, `Tool "tool_999" not found`)
}

func TestToolsThatChangeAreOfferedAnew(t *testing.T) {
	s := filesServer()
	c, heard := client(t, Options{}, "", map[string]*mcp.Server{"files": s})
	add(s, "fresh", "A new one.", func(context.Context, map[string]any) (any, error) { return "fresh", nil })
	for !strings.Contains(description(t, c), "fresh:") {
		select {
		case <-heard.changes:
		case <-time.After(30 * time.Second):
			t.Fatal("the client is not told")
		}
	}
	want(t, c, `files.fresh()`, "fresh")
}

func TestConfigurationIsRefused(t *testing.T) {
	lookup := func(name string) (string, bool) { return "value of " + name, name == "SET" }
	for _, tc := range []struct{ text, want string }{
		{`{`, "unexpected EOF"},
		{`{"mcpServers":{}} {}`, "more than one JSON value"},
		{`{"servers":{}}`, `unknown field "servers"`},
		{`{"mcpServers":{"a":{}}}`, `server "a": it needs a command or a url`},
		{`{"mcpServers":{"a":{"command":"x","url":"https://x"}}}`, `server "a": it needs a command or a url`},
		{`{"mcpServers":{"a":{"url":"ftp://x"}}}`, "http://"},
		{`{"mcpServers":{"a":{"url":"http://x","args":["y"]}}}`, "args, env and cwd are for a command"},
		{`{"mcpServers":{"a":{"command":"x","headers":{"y":"z"}}}}`, "headers are for a url"},
		{`{"mcpServers":{"a":{"command":"x","env":{"K":"${UNSET}"}}}}`, "K: $UNSET is not set"},
		{`{"mcpServers":{"a":{"command":"x","approve":"sometimes"}}}`, `"sometimes"`},
		{`{"mcpServers":{"a":{"command":"x","approve":{"t":5}}}}`, "approve is"},
		{`{"mcpServers":{"a":{"command":"x","approve":5}}}`, "approve is"},
		{`{"mcpServers":{"a-b":{"command":"x"},"a.b":{"command":"x"}}}`, `programs would know it as a_b, and "a-b" too`},
		{`{"mcpServers":{"codemode":{"command":"x"}}}`, "codemode"},
		{`{"mcpServers":{"console":{"command":"x"}}}`, `"console" is reserved`},
		{`{"mcpServers":{"` + strings.Repeat("x", MaxConfigBytes) + `":{}}}`, "more than 1048576 bytes"},
	} {
		if _, err := ReadConfig(strings.NewReader(tc.text), lookup); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.100s: %v, want %s", tc.text, err, tc.want)
		}
	}
	c, err := ReadConfig(strings.NewReader(`{"mcpServers":{"class":{"type":"stdio","command":"x","args":["y"],"env":{"K":"-${SET}-$SET"},"approve":"ask"},"web":{"url":"https://x","headers":{"Authorization":"Bearer ${SET}"}}}}`), lookup)
	if err != nil || c.Servers["class"].Env["K"] != "-value of SET-$SET" || c.Servers["web"].Headers["Authorization"] != "Bearer value of SET" {
		t.Errorf("%+v, %v", c, err)
	}
}
