package codemcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/executord/executord/ipc/codemode"
	"github.com/executord/executord/ipc/protocol"
)

// Bounds of a server behind this one.
const (
	maxTools       = 1000
	maxDescription = 4 << 10 // bytes of a description of a tool
	connectTime    = 30 * time.Second
	restartPause   = time.Second // between attempts to reach a server that is gone
	exitTime       = 2 * time.Second
	maxErrorBytes  = 8 << 10
)

// upstream is a server whose tools programs call. It is connected again when it is gone.
type upstream struct {
	name, namespace string
	config          ServerConfig
	dial            func() (mcp.Transport, error)
	version         string
	changed         func() // the server says that its tools are others

	dialing chan struct{} // holds an item while somebody connects; capacity 1

	mu      sync.Mutex // not held while the server is waited for
	session *mcp.ClientSession
	gone    error     // why there is no session
	tried   time.Time // when one was last asked for
	tools   []tool
	skipped int // tools that programs cannot have
}

// tool is one of a server's.
type tool struct {
	name     string // at the server
	known    string // in programs
	approval Approval
	types    codemode.ToolType
}

// transportOf is how a configured server is reached. Its command's errors go to stderr.
func transportOf(c ServerConfig, stderr io.Writer) (mcp.Transport, error) {
	if c.URL != "" {
		return &mcp.StreamableClientTransport{Endpoint: c.URL, HTTPClient: &http.Client{Transport: headers(c.Headers), CheckRedirect: stay}, DisableStandaloneSSE: true}, nil
	}
	cmd := exec.Command(c.Command, c.Args...)
	cmd.Env, cmd.Dir, cmd.Stderr = c.environment(), c.Cwd, stderr
	return &mcp.CommandTransport{Command: cmd, TerminateDuration: exitTime}, nil
}

// stay follows no redirect: the headers may be secrets, and are for the configured server only.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// headers are sent with every request.
type headers map[string]string

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connected is the session, a new one if the last is gone. Who comes while another connects waits for that, or until ctx ends.
func (u *upstream) connected(ctx context.Context) (*mcp.ClientSession, error) {
	if session := u.current(); session != nil {
		return session, nil
	}
	select {
	case u.dialing <- struct{}{}:
		defer func() { <-u.dialing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if session, err := u.attempt(); session != nil || err != nil {
		return session, err
	}
	session, tools, skipped, err := u.connect(ctx)
	return u.adopt(session, tools, skipped, err)
}

func (u *upstream) current() *mcp.ClientSession {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.session
}

// attempt begins to connect, unless there is a session by now, or it is too soon after the last attempt. With dialing.
func (u *upstream) attempt() (*mcp.ClientSession, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.session != nil:
		return u.session, nil
	case time.Since(u.tried) < restartPause:
		return nil, u.gone
	}
	u.tried = time.Now()
	return nil, nil
}

// adopt takes what connect came to. With dialing.
func (u *upstream) adopt(session *mcp.ClientSession, tools []tool, skipped int, err error) (*mcp.ClientSession, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		u.gone = fmt.Errorf("cannot reach the server %s: %w", u.name, err)
		return nil, u.gone
	}
	u.session, u.tools, u.skipped = session, tools, skipped
	go u.watch(session)
	return session, nil
}

// watch waits for the end of a session, which Close of it brings about too.
func (u *upstream) watch(session *mcp.ClientSession) {
	_ = session.Wait()
	_ = session.Close()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.session == session {
		u.session, u.gone = nil, fmt.Errorf("the server %s is gone", u.name)
	}
}

func (u *upstream) connect(ctx context.Context) (*mcp.ClientSession, []tool, int, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	transport, err := u.dial()
	if err != nil {
		return nil, nil, 0, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "executorctl", Version: u.version}, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { u.changed() },
	})
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return nil, nil, 0, err
	}
	tools, skipped, err := u.list(ctx, session)
	if err != nil {
		return nil, nil, 0, errors.Join(err, session.Close())
	}
	return session, tools, skipped, nil
}

// list asks for the tools. Those beyond the bound, those that are never approved, and those whose name in programs another
// one has, are left out.
func (u *upstream) list(ctx context.Context, session *mcp.ClientSession) (tools []tool, skipped int, err error) {
	known := map[string]bool{}
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, 0, fmt.Errorf("cannot list its tools: %w", err)
		}
		if len(tools)+skipped >= maxTools {
			return tools, skipped + 1, nil
		}
		found := u.toolOf(t)
		if found.approval == Never || known[found.known] {
			skipped++
			continue
		}
		known[found.known] = true
		tools = append(tools, found)
	}
	return tools, skipped, nil
}

func (u *upstream) toolOf(t *mcp.Tool) tool {
	a := t.Annotations
	destructive := a != nil && !a.ReadOnlyHint && a.DestructiveHint != nil && *a.DestructiveHint
	found := tool{name: t.Name, known: codemode.SanitizeToolName(t.Name), approval: u.config.Approve.of(t.Name, destructive)}
	found.types = codemode.ToolType{Name: t.Name, Description: codemode.Cut(t.Description, maxDescription)}
	found.types.Input, _ = json.Marshal(t.InputSchema)
	if t.OutputSchema != nil {
		found.types.Output, _ = json.Marshal(t.OutputSchema)
	}
	return found
}

// refresh asks for the tools again.
func (u *upstream) refresh(ctx context.Context) error {
	session, err := u.connected(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	tools, skipped, err := u.list(ctx, session)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tools, u.skipped = tools, skipped
	return nil
}

// known are the tools, which nobody changes, and how many more there are.
func (u *upstream) known() (tools []tool, skipped int, gone error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.session == nil {
		gone = u.gone
	}
	return u.tools, u.skipped, gone
}

// call calls a tool with the arguments of a program: one object, or nothing.
func (u *upstream) call(ctx context.Context, name string, args []protocol.Value) (protocol.Value, error) {
	arguments := json.RawMessage("{}")
	if len(args) > 0 {
		text, err := codemode.ToJSON(args[0])
		if err != nil {
			return nil, err
		}
		if string(text) != "null" {
			arguments = text
		}
	}
	if arguments[0] != '{' {
		return nil, errors.New("a tool takes one object")
	}
	session, err := u.connected(ctx)
	if err != nil {
		return nil, err
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, mcp.ErrConnectionClosed), errors.Is(err, io.EOF):
		return nil, fmt.Errorf("the server %s went away during the call", u.name)
	case err != nil:
		return nil, errors.New(codemode.Cut(err.Error(), maxErrorBytes))
	}
	return valueOf(result)
}

// valueOf is what a program gets: the structured content, else the texts, read as JSON where they are, else all of the result.
func valueOf(r *mcp.CallToolResult) (protocol.Value, error) {
	text, onlyText := textsOf(r.Content)
	if r.IsError {
		if text == "" {
			text = "the tool failed"
		}
		return nil, errors.New(codemode.Cut(text, maxErrorBytes))
	}
	if r.StructuredContent != nil {
		content, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return nil, err
		}
		return codemode.FromJSON(content)
	}
	if onlyText {
		if v, err := codemode.FromJSON([]byte(text)); err == nil {
			return v, nil
		}
		return protocol.Marshal(text)
	}
	whole, err := json.Marshal(map[string]any{"content": r.Content})
	if err != nil {
		return nil, err
	}
	return codemode.FromJSON(whole)
}

// textsOf joins the texts, and tells whether there is nothing else.
func textsOf(content []mcp.Content) (text string, only bool) {
	var texts []string
	for _, c := range content {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n"), len(texts) == len(content)
}

// close ends the session, and lets nobody connect any more. A command has its time to exit.
func (u *upstream) close() error {
	u.dialing <- struct{}{}
	defer func() { <-u.dialing }()
	u.mu.Lock()
	session := u.session
	u.session, u.gone, u.tried = nil, errors.New("it is closed"), time.Now().Add(time.Hour)
	u.mu.Unlock()
	if session == nil {
		return nil
	}
	return session.Close()
}
