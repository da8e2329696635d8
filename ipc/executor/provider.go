package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/executord/executord/ipc/protocol"
)

// Tool answers one call of a tool: one Value for each argument. A nil Value is undefined. It may be called by several
// goroutines at once; ctx ends with the execution.
type Tool func(ctx context.Context, args []protocol.Value) (protocol.Value, error)

// Provider is a namespace of tools in a program.
type Provider struct {
	Name string // a JavaScript identifier, see protocol.CheckProviderName

	// Tools by name. Without Any the program has exactly these.
	Tools map[string]Tool

	// Any, when set, makes every name a tool and answers for those that are not in Tools.
	Any func(ctx context.Context, path []string, args []protocol.Value) (protocol.Value, error)
}

// Provide gives the program these providers and answers their calls through r.Call; calls for other providers go to
// what r.Call was before. Changing a Provider's maps afterwards is the caller's race. A tool that panics throws an Error
// in the program; one that is not there throws `Tool "name" not found`.
func (r *Request) Provide(providers ...Provider) {
	byName := make(map[string]Provider, len(providers))
	r.Providers = slices.Clip(r.Providers)
	for _, p := range providers {
		byName[p.Name] = p
		r.Providers = append(r.Providers, p.announce())
	}
	before := r.Call
	r.Call = func(ctx context.Context, c ToolCall) (protocol.Value, error) {
		if p, ok := byName[c.Provider]; ok {
			return p.call(ctx, c)
		}
		if before != nil {
			return before(ctx, c)
		}
		return nil, notFound(c.Path)
	}
}

// announce is what the program is told of p.
func (p Provider) announce() protocol.Provider {
	if p.Any != nil {
		return protocol.Provider{Name: p.Name, Tools: protocol.Tools{All: true}}
	}
	paths := make([][]string, 0, len(p.Tools))
	for _, name := range slices.Sorted(maps.Keys(p.Tools)) {
		paths = append(paths, []string{name})
	}
	return protocol.Provider{Name: p.Name, Tools: protocol.Tools{Paths: paths}}
}

// call answers one call for p.
func (p Provider) call(ctx context.Context, c ToolCall) (v protocol.Value, err error) {
	defer recoverAs(&err, toolName(c.Path))
	args, err := splitArgs(c.Args)
	if err != nil {
		return nil, err
	}
	if len(c.Path) == 1 {
		if tool := p.Tools[c.Path[0]]; tool != nil {
			return tool(ctx, args)
		}
	}
	if p.Any != nil {
		return p.Any(ctx, c.Path, args)
	}
	return nil, notFound(c.Path)
}

func toolName(path []string) string { return `Tool "` + strings.Join(path, ".") + `"` }

func notFound(path []string) error {
	return &protocol.ThrownError{Message: toolName(path) + " not found"}
}

// recoverAs turns a panic into an error for the program. To be deferred.
func recoverAs(err *error, what string) {
	if reason := recover(); reason != nil {
		*err = &protocol.ThrownError{Message: fmt.Sprintf("%s panicked: %v", what, reason)}
	}
}

// splitArgs takes the array of arguments apart. Nil is no arguments.
func splitArgs(text protocol.Value) (args []protocol.Value, err error) {
	if text == nil {
		return nil, nil
	}
	bounds := protocol.ValueBounds
	bounds.Depth++ // the array itself
	err = protocol.Items(text, bounds, func(arg json.RawMessage) error {
		args = append(args, arg)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the arguments: %w", err)
	}
	return args, nil
}
