package executor

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/executord/executord/ipc/protocol"
)

// Func makes a Tool of an ordinary Go function. It may take a context.Context first; each further parameter gets the
// argument in its place by protocol.Unmarshal, the zero value when there is none, and a variadic one gets the rest.
// Arguments beyond the parameters are passed over. It may return nothing (undefined), a value (encoded by
// protocol.Marshal), an error, or a value and an error. An argument that does not fit throws a TypeError in the
// program, and a panic an Error.
//
// Func panics when f is not such a function.
func Func(f any) Tool {
	fn := reflect.ValueOf(f)
	if fn.Kind() != reflect.Func || fn.IsNil() {
		panic(fmt.Sprintf("executor.Func: %T is not a function", f))
	}
	s := inspect(fn.Type())
	return func(ctx context.Context, args []protocol.Value) (v protocol.Value, err error) {
		defer recoverAs(&err, "Tool")
		in, err := s.arguments(ctx, args)
		if err != nil {
			return nil, err
		}
		return s.results(fn.Call(in))
	}
}

// signature is the type of a function that Func takes.
type signature struct {
	typ   reflect.Type
	ctx   int // parameters that are the context: 0 or 1
	value bool
	err   bool
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

func inspect(t reflect.Type) signature {
	s := signature{typ: t}
	if t.NumIn() > 0 && t.In(0) == contextType {
		s.ctx = 1
	}
	for i := s.ctx; i < t.NumIn(); i++ {
		if !encodable(t.In(i)) {
			panic(fmt.Sprintf("executor.Func: no argument can be a %s, in %s", t.In(i), t))
		}
	}
	out := t.NumOut()
	if s.err = out > 0 && t.Out(out-1) == errorType; s.err {
		out--
	}
	if s.value = out == 1; out > 1 || s.value && !encodable(t.Out(0)) {
		panic(fmt.Sprintf("executor.Func: results must be a value, an error, or both in this order, in %s", t))
	}
	return s
}

// encodable tells whether values of type t can be arguments or results.
func encodable(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		if t.Name() != "" {
			return true
		}
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return false
	}
	return t != contextType
}

// arguments makes what the function is called with.
func (s signature) arguments(ctx context.Context, args []protocol.Value) ([]reflect.Value, error) {
	in := make([]reflect.Value, 0, s.typ.NumIn()+len(args))
	if s.ctx == 1 {
		in = append(in, reflect.ValueOf(ctx))
	}
	fixed := s.typ.NumIn() - s.ctx
	if s.typ.IsVariadic() {
		fixed--
	}
	for i := range fixed {
		p := reflect.New(s.typ.In(s.ctx + i))
		if i < len(args) {
			if err := decode(i, args[i], p); err != nil {
				return nil, err
			}
		}
		in = append(in, p.Elem())
	}
	if !s.typ.IsVariadic() {
		return in, nil
	}
	rest := s.typ.In(s.typ.NumIn() - 1).Elem()
	for i := fixed; i < len(args); i++ {
		p := reflect.New(rest)
		if err := decode(i, args[i], p); err != nil {
			return nil, err
		}
		in = append(in, p.Elem())
	}
	return in, nil
}

func decode(i int, arg protocol.Value, into reflect.Value) error {
	if err := protocol.Unmarshal(arg, into.Interface()); err != nil {
		return typeError(fmt.Sprintf("argument %d", i+1), err)
	}
	return nil
}

// typeError is thrown in the program for a value that cannot cross.
func typeError(what string, err error) error {
	reason := err.Error()
	var at *protocol.ValueError
	if errors.As(err, &at) {
		if reason = at.Reason; at.Path != "" {
			what += " at " + at.Path
		}
	}
	return &protocol.ThrownError{Name: "TypeError", Message: what + ": " + reason}
}

// results encodes what the function returned.
func (s signature) results(out []reflect.Value) (protocol.Value, error) {
	if s.err {
		if err, _ := out[len(out)-1].Interface().(error); err != nil {
			return nil, err
		}
	}
	if !s.value {
		return protocol.UndefinedValue, nil
	}
	v, err := protocol.Marshal(out[0].Interface())
	if err != nil {
		return nil, typeError("result", err)
	}
	return v, nil
}
