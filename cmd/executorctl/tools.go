package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// Bounds of tools.
const (
	maxToolsFileBytes  = 16 << 20
	maxToolOutputBytes = 8 << 20
	maxToolErrorBytes  = 4 << 10
)

// toolSpec says how one tool is answered: exactly one of its fields is set.
type toolSpec struct {
	Command []string        `json:"command"`
	Value   json.RawMessage `json:"value"`
	Error   *string         `json:"error"`
}

// readTools reads the file of --tools.
func readTools(path string) ([]executor.Provider, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read tools: %w", err)
	}
	defer f.Close()
	text, err := readUpTo(f, maxToolsFileBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read tools from %s: %w", path, err)
	}
	providers, err := parseTools(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use tools of %s: %w", path, err)
	}
	return providers, nil
}

// parseTools reads {provider: {tool: spec}} and refuses everything else.
func parseTools(text []byte) (providers []executor.Provider, err error) {
	var file map[string]map[string]json.RawMessage
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("it must be an object of objects: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(file)) {
		p := executor.Provider{Name: name, Tools: map[string]executor.Tool{}}
		for tool, spec := range file[name] {
			if p.Tools[tool], err = parseTool(spec); err != nil {
				return nil, fmt.Errorf("%s.%s: %w", name, tool, err)
			}
		}
		providers = append(providers, p)
	}
	return providers, nil
}

func parseTool(text json.RawMessage) (executor.Tool, error) {
	var spec toolSpec
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&spec); err != nil {
		return nil, errors.New(`a tool is {"command": [argv…]}, {"value": …} or {"error": message}: ` +
			strings.TrimPrefix(err.Error(), "json: "))
	}
	switch {
	case spec.Command != nil && spec.Value == nil && spec.Error == nil:
		if len(spec.Command) == 0 || spec.Command[0] == "" {
			return nil, errors.New("the command is empty")
		}
		return commandTool(spec.Command), nil
	case spec.Command == nil && spec.Value != nil && spec.Error == nil:
		return valueTool(protocol.Value(spec.Value))
	case spec.Command == nil && spec.Value == nil && spec.Error != nil:
		return func(context.Context, []protocol.Value) (protocol.Value, error) {
			return nil, &protocol.ThrownError{Message: *spec.Error}
		}, nil
	}
	return nil, errors.New("it needs exactly one of command, value and error")
}

func valueTool(v protocol.Value) (executor.Tool, error) {
	if _, err := protocol.Decode(v, protocol.ValueBounds); err != nil {
		return nil, err
	}
	return func(context.Context, []protocol.Value) (protocol.Value, error) { return v, nil }, nil
}

// commandTool runs a command for each call. It dies with its process group when the execution ends.
func commandTool(argv []string) executor.Tool {
	return func(ctx context.Context, args []protocol.Value) (protocol.Value, error) {
		out := &head{limit: maxToolOutputBytes}
		errs := &tail{limit: maxToolErrorBytes}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stdin = bytes.NewReader(arguments(args))
		cmd.Stdout, cmd.Stderr = out, errs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = time.Second // for a grandchild that left the group and holds the pipe
		out.full = func() { _ = cmd.Cancel() }
		err := cmd.Run()
		switch {
		case out.over:
			return nil, &protocol.ThrownError{Name: "RangeError", Message: fmt.Sprintf("%s printed more than %d bytes", argv[0], maxToolOutputBytes)}
		case err != nil:
			return nil, &protocol.ThrownError{Message: failure(argv[0], err, errs.String())}
		}
		return answerOf(argv[0], out.bytes.Bytes())
	}
}

// arguments is the JSON array that a command reads.
func arguments(args []protocol.Value) []byte {
	text := []byte{'['}
	for i, a := range args {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, a...)
	}
	return append(text, ']', '\n')
}

func failure(command string, err error, said string) string {
	message := fmt.Sprintf("%s failed: %s", command, err)
	if said = strings.TrimSpace(said); said != "" {
		message += ": " + said
	}
	return message
}

// answerOf reads what a command printed. Nothing is undefined.
func answerOf(command string, text []byte) (protocol.Value, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return protocol.UndefinedValue, nil
	}
	if err := protocol.Check(text, protocol.ValueBounds); err != nil {
		return nil, &protocol.ThrownError{Name: "TypeError", Message: fmt.Sprintf("%s did not print one JSON value: %s", command, err)}
	}
	return text, nil
}

// head keeps the beginning of what is written, and calls full once when there is more.
type head struct {
	bytes bytes.Buffer
	limit int
	over  bool
	full  func()
}

func (h *head) Write(p []byte) (int, error) {
	if h.bytes.Len()+len(p) > h.limit {
		if !h.over {
			h.over = true
			h.full()
		}
		return len(p), nil
	}
	return h.bytes.Write(p)
}

// tail keeps the end of what is written.
type tail struct {
	bytes []byte
	limit int
}

func (t *tail) Write(p []byte) (int, error) {
	t.bytes = append(t.bytes, p...)
	if extra := len(t.bytes) - t.limit; extra > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.bytes), "\uFFFD") }
