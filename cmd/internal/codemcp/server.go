//lint:file-ignore SA1019 logging is how clients of the versions of the protocol that are spoken here hear of lines

package codemcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/executord/executord/ipc/codemode"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// toolName is the name of the one tool.
const toolName = "code"

// waitTime is how long a program may wait for tools, and for users who are asked.
const waitTime = 10 * time.Minute

// Bounds of what a client gets.
const (
	maxLogText    = 8 << 10 // bytes of the lines beside a result
	maxLineBytes  = 2 << 10 // bytes of a line, on its own
	maxAskedBytes = 2 << 10 // bytes of the arguments that a user is shown
)

// Options of a Server. Native and Version are needed; other zero fields mean their defaults.
type Options struct {
	Native  executor.Executor // runs the programs; the Server does not close it
	Config  Config
	Version string
	// Timeout is how long a program may run without what it waits for tools and approvals; codemode.DefaultTimeout unless
	// given. With them it may take waitTime longer.
	Timeout time.Duration
	// MaxText is how long the text of a result may be, in code units of UTF-16; codemode.MaxTextUnits unless given.
	MaxText int
	// Stderr gets what servers print beside the protocol, and what is wrong with them; nil discards it. It has to bear several
	// writers at once.
	Stderr io.Writer
	// Transport takes the place of what the configuration says, for servers in the same process.
	Transport func(name string, c ServerConfig) (mcp.Transport, error)
}

// Server is the MCP server.
type Server struct {
	options  Options
	executor *codemode.Executor
	servers  []*upstream
	mcp      *mcp.Server
	log      *slog.Logger

	refreshing sync.WaitGroup
	ctx        context.Context // ends with Run
	mu         sync.Mutex      // one refresh at a time
}

// New makes a Server. Nothing is connected before Run.
func New(o Options) *Server {
	if o.MaxText <= 0 {
		o.MaxText = codemode.MaxTextUnits
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.Transport == nil {
		o.Transport = func(_ string, c ServerConfig) (mcp.Transport, error) { return transportOf(c, o.Stderr) }
	}
	if o.Timeout <= 0 {
		o.Timeout = codemode.DefaultTimeout
	}
	native := codemode.New(o.Native, codemode.Config{Timeout: o.Timeout, Limits: protocol.Limits{TotalMs: (o.Timeout + waitTime).Milliseconds()}})
	s := &Server{options: o, executor: native, log: slog.New(slog.NewTextHandler(o.Stderr, nil))}
	for _, name := range slices.Sorted(maps.Keys(o.Config.Servers)) {
		c := o.Config.Servers[name]
		u := &upstream{name: name, namespace: codemode.SanitizeToolName(name), config: c, version: o.Version, dialing: make(chan struct{}, 1)}
		u.dial = func() (mcp.Transport, error) { return o.Transport(name, c) }
		u.changed = func() { s.refresh(u) }
		s.servers = append(s.servers, u)
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "executord", Version: o.Version}, &mcp.ServerOptions{
		Capabilities:              &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}},
		SupportedProtocolVersions: slices.DeleteFunc(mcp.SupportedProtocolVersions(), func(v string) bool { return v >= "2026-07-28" }),
	})
	return s
}

// Run connects to the servers and serves one client until it leaves or ctx ends. A server that cannot be reached is left out,
// and asked again when a program calls it.
func (s *Server) Run(ctx context.Context, t mcp.Transport) error {
	defer s.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before close, which waits for refreshes
	s.ctx = ctx
	var all sync.WaitGroup
	for _, u := range s.servers {
		all.Go(func() {
			if _, err := u.connected(ctx); err != nil {
				s.log.Warn("a server is left out", "server", u.name, "error", err)
			}
		})
	}
	all.Wait()
	s.publish()
	err := s.mcp.Run(ctx, t)
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return ctx.Err()
	}
	return err
}

func (s *Server) close() {
	s.refreshing.Wait()
	var all sync.WaitGroup
	for _, u := range s.servers {
		all.Go(func() {
			if err := u.close(); err != nil {
				s.log.Debug("a server did not end well", "server", u.name, "error", err)
			}
		})
	}
	all.Wait()
}

// refresh asks a server for its tools, and tells the client.
func (s *Server) refresh(u *upstream) {
	s.refreshing.Go(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := u.refresh(s.ctx); err != nil {
			s.log.Warn("the tools of a server are those of before", "server", u.name, "error", err)
			return
		}
		s.publish()
	})
}

// publish offers the tool, anew where the servers have other tools now.
func (s *Server) publish() {
	closed, open := false, true
	s.mcp.AddTool(&mcp.Tool{
		Name: toolName, Title: "Run code", Description: describe(s.servers),
		InputSchema: json.RawMessage(`{"type":"object","properties":{"code":{"type":"string","description":"The program, in JavaScript."}},"required":["code"],"additionalProperties":false}`),
		// A program does what its tools do; alone it can do nothing.
		Annotations: &mcp.ToolAnnotations{Title: "Run code", ReadOnlyHint: len(s.servers) == 0, DestructiveHint: pick(len(s.servers) > 0, &open, &closed), OpenWorldHint: pick(len(s.servers) > 0, &open, &closed)},
	}, s.run)
}

func pick(first bool, a, b *bool) *bool {
	if first {
		return a
	}
	return b
}

// run answers a call of the tool.
func (s *Server) run(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var input struct {
		Code *string `json:"code"`
	}
	if err := json.Unmarshal(r.Params.Arguments, &input); err != nil || input.Code == nil {
		return failure("invalid_params", "the tool takes {code}, a text", nil), nil
	}
	p := &progress{session: r.Session, token: r.Params.GetProgressToken()}
	providers := []codemode.Provider{library(s.servers)}
	for _, u := range s.servers {
		providers = append(providers, s.provider(u, r.Session, p))
	}
	result := s.executor.Execute(ctx, *input.Code, providers, codemode.Options{OnLog: func(line string) { logged(ctx, r.Session, line) }})
	if result.Error != "" {
		kind := "exception"
		if result.Fault != nil {
			kind = string(result.Fault.Type)
		}
		return failure(kind, codemode.Cut(result.Error, maxErrorBytes), result.Logs), nil
	}
	text, err := codemode.Text(result.Value, s.options.MaxText)
	if err != nil {
		return failure(string(protocol.ResultUnserializable), err.Error(), result.Logs), nil
	}
	return &mcp.CallToolResult{Content: content(text, result.Logs)}, nil
}

// failure is a result that is an error, with its type for programs.
func failure(kind, message string, logs []string) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		IsError: true, Content: content("Error: "+message, logs),
		StructuredContent: map[string]any{"error": map[string]string{"type": kind, "message": message}},
	}
}

// content is a text, and the lines of the console, the last ones where they are many.
func content(text string, logs []string) []mcp.Content {
	list := []mcp.Content{&mcp.TextContent{Text: text}}
	if len(logs) == 0 {
		return list
	}
	kept, size := len(logs), 0
	for kept > 0 {
		if size += len(codemode.Cut(logs[kept-1], maxLineBytes)) + 1; size > maxLogText {
			break
		}
		kept--
	}
	var b strings.Builder
	b.WriteString("Console output:")
	if kept > 0 {
		fmt.Fprintf(&b, "\n[%d lines are left out here]", kept)
	}
	for _, line := range logs[kept:] {
		b.WriteString("\n" + codemode.Cut(line, maxLineBytes))
	}
	return append(list, &mcp.TextContent{Text: b.String()})
}

// logged tells the client of a line, as far as it wants to know.
func logged(ctx context.Context, session *mcp.ServerSession, line string) {
	level := mcp.LoggingLevel("info")
	switch {
	case strings.HasPrefix(line, "[warn] "):
		level = "warning"
	case strings.HasPrefix(line, "[error] "):
		level = "error"
	}
	_ = session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "program", Data: codemode.Cut(line, maxLineBytes)})
}

// progress tells the client, if it asked, of each call of a tool.
type progress struct {
	session *mcp.ServerSession
	token   any

	mu   sync.Mutex
	done float64
}

func (p *progress) step(ctx context.Context, message string) {
	if p.token == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	_ = p.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: p.token, Progress: p.done, Message: message})
}

// provider has the tools of a server, as a program of that session calls them.
func (s *Server) provider(u *upstream, session *mcp.ServerSession, p *progress) codemode.Provider {
	provider := codemode.Provider{Name: u.namespace}
	tools, _, _ := u.known()
	for _, t := range tools {
		provider.Tools = append(provider.Tools, codemode.Tool{Name: t.name, Call: func(ctx context.Context, args []protocol.Value) (protocol.Value, error) {
			p.step(ctx, u.namespace+"."+t.known)
			if t.approval == Ask {
				if err := approved(ctx, session, u, t, args); err != nil {
					return nil, err
				}
			}
			return u.call(ctx, t.name, args)
		}})
	}
	return provider
}

// approved asks the user of the client, and is an error unless the answer is yes.
func approved(ctx context.Context, session *mcp.ServerSession, u *upstream, t tool, args []protocol.Value) error {
	c := session.InitializeParams().Capabilities
	if c == nil || c.Elicitation == nil {
		return fmt.Errorf("%s.%s needs an approval, and the client cannot ask for one", u.namespace, t.known)
	}
	shown := "nothing"
	if len(args) > 0 {
		text, err := codemode.Text(args[0], maxAskedBytes)
		if err != nil {
			return err
		}
		shown = text
	}
	answer, err := session.Elicit(ctx, &mcp.ElicitParams{
		Message:         fmt.Sprintf("A program wants to call %s.%s with:\n%s", u.namespace, t.known, shown),
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%s.%s needs an approval: %s", u.namespace, t.known, codemode.Cut(err.Error(), maxErrorBytes))
	case answer.Action != "accept":
		return fmt.Errorf("%s.%s was not approved", u.namespace, t.known)
	}
	return nil
}
