package protocol

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
	"time"
)

// declaredTypes reads every constant of type Type out of the source, so that none can be left out of the taxonomy.
func declaredTypes(t *testing.T) []Type {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var types []Type
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != "Type" {
			return true
		}
		for _, v := range spec.Values {
			s, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			types = append(types, Type(s))
		}
		return true
	})
	return types
}

func TestTaxonomyHasEveryType(t *testing.T) {
	declared := declaredTypes(t)
	if len(declared) != len(Types()) || len(declared) < 28 {
		t.Errorf("%d types declared, %d in the taxonomy", len(declared), len(Types()))
	}
	for _, d := range declared {
		if info, ok := d.Info(); !ok || info.Type != d {
			t.Errorf("%s is not in the taxonomy", d)
		}
	}
}

func TestTaxonomyIsUnambiguous(t *testing.T) {
	types, codes, exits := map[Type]bool{}, map[int]bool{}, map[int]bool{}
	for _, info := range Types() {
		if types[info.Type] || codes[info.Code] || exits[info.Exit] {
			t.Errorf("%s shares its name, code or exit status", info.Type)
		}
		types[info.Type], codes[info.Code], exits[info.Exit] = true, true, true
		if info.Exit < 3 || info.Exit > 125 {
			t.Errorf("%s: exit status %d means something else to a shell", info.Type, info.Exit)
		}
		if info.Code == codeThrown || info.Code > -32000 || info.Code < -32768 {
			t.Errorf("%s: code %d is not a reserved one of JSON-RPC", info.Type, info.Code)
		}
		if TypeOf(info.Code) != info.Type {
			t.Errorf("%s: its code stands for %s", info.Type, TypeOf(info.Code))
		}
	}
}

func TestTypesIsACopy(t *testing.T) {
	Types()[0].Type = "changed"
	if Types()[0].Type != Exception {
		t.Error("a caller can change the taxonomy")
	}
}

func TestUnknownTypeAndCode(t *testing.T) {
	if _, ok := Type("nonsense").Info(); ok {
		t.Error("nonsense is in the taxonomy")
	}
	if got := TypeOf(1); got != Internal {
		t.Errorf("TypeOf(1) = %s", got)
	}
}

func TestErrorIsItsType(t *testing.T) {
	err := fmt.Errorf("while running: %w", &Error{Type: Overloaded, Message: "full", RetryAfterMs: 250})
	var e *Error
	if !errors.Is(err, Overloaded) || errors.Is(err, Draining) || !errors.As(err, &e) {
		t.Fatal("not recognised")
	}
	if !e.Retryable() || e.RetryAfter() != 250*time.Millisecond || (&Error{Type: Syntax}).Retryable() {
		t.Error("wrong on retrying")
	}
}

func TestErrorText(t *testing.T) {
	tests := []struct {
		name string
		err  *Error
		want string
	}{
		{"plain", Errorf(Draining, "stopping in %d s", 3), "draining: stopping in 3 s"},
		{"thrown", &Error{Type: Exception, Name: "TypeError", Message: "x is null"}, "exception: TypeError: x is null"},
		{
			"position", &Error{Type: Syntax, Message: "bad", Position: &Position{File: "main.js", Line: 2, Column: 7}},
			"syntax: bad (main.js:2:7)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.err.Error(); got != tt.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestAsError(t *testing.T) {
	if AsError(nil) != nil {
		t.Error("nil is an error")
	}
	if e := AsError(errors.New("disk on fire")); e.Type != Internal || e.Message != "disk on fire" {
		t.Errorf("got %v", e)
	}
	typed := FieldError("code", "is empty")
	if AsError(fmt.Errorf("wrapped: %w", typed)) != typed {
		t.Error("a wrapped *Error is not found")
	}
}
