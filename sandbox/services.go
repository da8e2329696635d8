package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/executord/executord/sandbox/runtime"
	"github.com/executord/executord/sandbox/v8"
	"github.com/executord/executord/sandbox/webcrypto"
)

// Services are the operations that the library asks of Go, for one execution.
type Services interface {
	// Op performs one; the first argument is its name. See v8.Host.
	Op(args []any) (any, error)
}

// NewServices returns the services of one execution for a host that is no worker, and what frees them.
func NewServices() (s Services, end func()) {
	own := services{}.begin()
	return own, own.end
}

// services is what the library asks of Go beyond a program's own needs. Its zero value has no code caches.
type services struct {
	caches map[string][]byte  // of code, by part
	parts  map[string]v8.Part // those that a program has woken
	codecs *codecTable        // of one execution
	keys   *webcrypto.Keys    // of one execution
}

// begin returns the services of one execution, which end must free.
func (s services) begin() services {
	s.codecs = &codecTable{}
	s.keys = &webcrypto.Keys{}
	return s
}

func (s services) end() { s.codecs.close() }

// Part finds a part of the library.
func (s services) Part(name string) (v8.Part, bool) {
	if p, ok := s.parts[name]; ok {
		return p, true
	}
	text, ok := runtime.Part(name)
	if !ok {
		return v8.Part{}, false
	}
	p := v8.NewPart(text, s.caches[name])
	if s.parts != nil {
		s.parts[name] = p
	}
	return p, true
}

// ops are the operations by name. Each checks its own arguments: they come from the library, which has converted what
// the program gave, but a program that breaks out of it must not find a way further here.
var ops = map[string]func(args []any) (any, error){}

// executionOps are those that hold something for an execution.
var executionOps = map[string]func(s services, args []any) (any, error){
	"compression.open":   services.openCodec,
	"compression.write":  services.writeCodec,
	"compression.finish": services.finishCodec,
	"compression.read":   services.readCodec,
	"compression.close":  services.closeCodec,
}

// Op performs an operation; the first argument is its name.
func (s services) Op(args []any) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("Error: no operation is named")
	}
	name, _ := args[0].(string)
	if s.keys != nil && strings.HasPrefix(name, webcrypto.Prefix) {
		return s.keys.Op(name, args[1:])
	}
	if op, ok := executionOps[name]; ok {
		return op(s, args[1:])
	}
	op, ok := ops[name]
	if !ok {
		return nil, fmt.Errorf("Error: there is no operation %q", name)
	}
	return op(args[1:])
}
