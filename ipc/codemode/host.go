package codemode

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/executord/executord/ipc/protocol"
)

// pause is that of the dialect's durable runtime: a program dies of an error with this message.
const pause = "__CODEMODE_PAUSE__"

// host is the host's side of the harness: tools and connectors, asked by name.
type host struct {
	tools      map[string]map[string]Tool
	connectors []Connector
	mark       string
}

// call answers the harness's call(namespace, name, sent, bytes): for a connector, sent is a value; for a tool, the text of its
// arguments.
func (h host) call(ctx context.Context, args []protocol.Value) (protocol.Value, error) {
	if len(args) != 4 {
		return nil, errors.New("the host is called with four arguments")
	}
	var namespace, name string
	if err := errors.Join(protocol.Unmarshal(args[0], &namespace), protocol.Unmarshal(args[1], &name)); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(h.connectors, func(c Connector) bool { return c.Name == namespace }); i >= 0 {
		return connect(ctx, h.connectors[i], name, args[2])
	}
	tool, ok := h.tools[namespace][name]
	if !ok || tool.Call == nil {
		return refusal(fmt.Sprintf(`Tool "%s" not found`, name))
	}
	values, err := arguments(args[2], args[3], h.mark)
	if err != nil {
		return refusal(err.Error())
	}
	v, err := guarded(name, func() (protocol.Value, error) { return tool.Call(ctx, values) })
	if err != nil {
		return refusal(messageOf(err))
	}
	value, err := asJSON(v)
	if err != nil {
		return refusal(err.Error())
	}
	return answer(value)
}

func connect(ctx context.Context, c Connector, method string, argument protocol.Value) (protocol.Value, error) {
	if c.Call == nil {
		return refusal(fmt.Sprintf(`Connector "%s" not found`, c.Name))
	}
	v, err := guarded(method, func() (protocol.Value, error) { return c.Call(ctx, method, argument) })
	if err != nil {
		return refusal(messageOf(err))
	}
	value, err := graphOf(v)
	if err != nil {
		return refusal(err.Error())
	}
	if o, _ := value.(*protocol.Object); o != nil {
		switch control, _ := member(o, "__codemode_control__"); control {
		case "pause":
			return refusal(pause)
		case "error":
			message, _ := member(o, "message")
			return refusal(textOf(message))
		}
	}
	return answer(value)
}

// answer is what the harness reads: a value alone, or what refusal has.
func answer(items ...any) (protocol.Value, error) {
	return protocol.Encode(&protocol.Array{Items: items})
}

// refusal is the answer by which an error is thrown in the program.
func refusal(message string) (protocol.Value, error) {
	return answer(message, nil, true)
}

// guarded calls f and makes an error of a panic.
func guarded(name string, f func() (protocol.Value, error)) (v protocol.Value, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf(`Tool "%s" panicked: %v`, name, reason)
		}
	}()
	return f()
}

func graphOf(v protocol.Value) (any, error) {
	if v == nil {
		return protocol.Undefined{}, nil
	}
	return protocol.Decode(v, protocol.ValueBounds)
}

func member(o *protocol.Object, key string) (value any, ok bool) {
	for _, m := range o.Members {
		if m.Key == key {
			return m.Value, true
		}
	}
	return protocol.Undefined{}, false
}

// messageOf is what the program sees of something thrown: its message, or its text where it is no error.
func messageOf(thrown any) string {
	err, ok := thrown.(error)
	if !ok {
		return textOf(thrown)
	}
	var t *protocol.ThrownError
	if !errors.As(err, &t) {
		return err.Error()
	}
	if t.Thrown == nil {
		return t.Message
	}
	value, decodeErr := graphOf(t.Thrown)
	if decodeErr != nil {
		return t.Message
	}
	return textOf(value)
}
