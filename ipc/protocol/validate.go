package protocol

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the params of a request. The service may set lower ones.
const (
	MaxExecutionBytes = 128      // caller's id of an execution
	MaxCodeBytes      = 16 << 20 // submitted text, and each module
	MaxNameBytes      = 256      // file name
	MaxProviders      = 64
	MaxTools          = 4096 // tools of one provider
	MaxModules        = 1024
	MaxSpecifierBytes = 1024
	MaxTraceBytes     = 512 // each of the two fields
)

// Bounds of one Value, for all codecs and in every direction. No setting moves them: they keep the walk over a value from
// exhausting a stack.
const (
	MaxValueDepth = 2000    // arrays and objects of its text, tags included, that are open at once
	MaxValueParts = 1 << 20 // objects and primitives in it; no more than four JSON values for each
)

// ValueBounds are the widest bounds for the text of one Value. The service may set lower ones on its length.
var ValueBounds = Bounds{Bytes: 64 << 20, Depth: MaxValueDepth, Nodes: 4 * MaxValueParts}

// Validate holds a request that a Go caller made to the rules of DecodeExecute. Whoever takes an Execute from
// elsewhere than DecodeExecute calls it before anything of the request is used. It changes nothing.
func Validate(e *Execute) error {
	if err := checkRaw("input", e.Input); err != nil {
		return err
	}
	return e.validate()
}

// ValidateInvoke is Validate for an invocation.
func ValidateInvoke(h *HandleInvoke) error {
	if err := h.validate(); err != nil {
		return err
	}
	for i, arg := range h.Args {
		if err := checkRaw("", arg); err != nil {
			return at(err, itemPath("args", i))
		}
	}
	return nil
}

// MaxHandleBytes bounds the id of a handle.
const MaxHandleBytes = 128

func (h *HandleInvoke) validate() error {
	if err := validExecution(h.Execution); err != nil {
		return err
	}
	if err := validHandle("handle", h.Handle); err != nil {
		return err
	}
	if len(h.Args) > MaxArgs {
		return FieldError("args", "has %d items, more than %d", len(h.Args), MaxArgs)
	}
	if err := oneOf("method", h.Method, HandleNext, HandleReturn, HandleThrow); err != nil {
		return err
	}
	if err := validTrace(h.Trace); err != nil {
		return err
	}
	for _, name := range fixedLimits {
		if *h.Limits.Field(name) != 0 {
			return FieldError("limits."+name, "is that of the execution, and cannot be given here")
		}
	}
	return h.Limits.validate("limits")
}

func validHandle(field, id string) error {
	if id == "" {
		return FieldError(field, "must not be empty")
	}
	return checkText(field, id, MaxHandleBytes)
}

// fixedLimits are those of an isolate, which an invocation cannot have of its own.
var fixedLimits = []string{
	"heapMiB", "bufferMiB", "slackMiB", "stackKiB", "messageBytes", "moduleBytes", "valueDepth", "valueParts", "timers",
}

func checkRaw(field string, raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	if err := Check(raw, ValueBounds); err != nil {
		return FieldError(field, "%s", err)
	}
	return nil
}

// validate is all rules but those on the JSON text of raw fields.
func (e *Execute) validate() error {
	for _, rule := range []func(*Execute) error{
		validCode, validNames, validWords, validProviders, validModules, validRetain,
	} {
		if err := rule(e); err != nil {
			return err
		}
	}
	if err := validTrace(e.Trace); err != nil {
		return err
	}
	return e.Limits.validate("limits")
}

func validRetain(e *Execute) error {
	if e.Retain != nil && e.Retain.TTLMs < 0 {
		return FieldError("retain.ttlMs", "must be positive")
	}
	return nil
}

func validCode(e *Execute) error {
	switch {
	case !utf8.ValidString(e.Code):
		return at(Errorf(InvalidCode, "code is not valid UTF-8"), "code")
	case len(e.Code) > MaxCodeBytes:
		return at(Errorf(InvalidCode, "code has %d bytes, more than %d", len(e.Code), MaxCodeBytes), "code")
	case blank(e.Code):
		return at(Errorf(InvalidCode, "code is empty"), "code")
	}
	return nil
}

// blank tells that s has nothing but white space, as JavaScript counts it.
func blank(s string) bool {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }) == ""
}

func validExecution(id string) error {
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return FieldError("execution", "must be printable")
		}
	}
	return checkText("execution", id, MaxExecutionBytes)
}

func validNames(e *Execute) error {
	if err := validExecution(e.Execution); err != nil {
		return err
	}
	if isReserved(e.Name) {
		return FieldError("name", "must not start with %q", reservedScheme)
	}
	return checkText("name", e.Name, MaxNameBytes)
}

// Names of the sandbox's own scripts start with reservedScheme. Modules have URLs of that scheme, with an empty
// authority, by which they may be named too.
const (
	reservedScheme = "executor:"
	moduleScheme   = "executor:///"
)

func isReserved(name string) bool {
	return strings.HasPrefix(name, reservedScheme) && !strings.HasPrefix(name, moduleScheme)
}

// checkText refuses a string that is too long or would break a line.
func checkText(field, s string, limit int) error {
	switch {
	case !utf8.ValidString(s):
		return FieldError(field, "must be valid UTF-8")
	case len(s) > limit:
		return FieldError(field, "has %d bytes, more than %d", len(s), limit)
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		return FieldError(field, "must not hold control characters or line breaks")
	}
	return nil
}

func validWords(e *Execute) error {
	if err := oneOf("form", e.Form, FormAuto, FormModule, FormFunction, FormScript); err != nil {
		return err
	}
	if err := oneOf("language", e.Language, JavaScript, TypeScript); err != nil {
		return err
	}
	return oneOf("network", e.Network, NetworkNone, NetworkHost, NetworkDirect)
}

// oneOf accepts the zero value and the given ones.
func oneOf[T ~string](field string, got T, known ...T) error {
	if got == "" || slices.Contains(known, got) {
		return nil
	}
	list := make([]string, len(known))
	for i, k := range known {
		list[i] = fmt.Sprintf("%q", string(k))
	}
	return FieldError(field, "must be one of %s, not %.80q", strings.Join(list, ", "), string(got))
}

func validProviders(e *Execute) error {
	if len(e.Providers) > MaxProviders {
		return FieldError("providers", "has %d items, more than %d", len(e.Providers), MaxProviders)
	}
	seen := make(map[string]bool, len(e.Providers))
	for i, p := range e.Providers {
		field := fmt.Sprintf("providers[%d]", i)
		if err := CheckProviderName(p.Name); err != nil {
			return at(err, field+".name")
		}
		if seen[p.Name] {
			return at(Errorf(InvalidProvider, "provider name %q comes twice", p.Name), field+".name")
		}
		seen[p.Name] = true
		if err := p.Tools.validate(field + ".tools"); err != nil {
			return err
		}
	}
	return nil
}

func validModules(e *Execute) error {
	if len(e.Modules) > MaxModules {
		return FieldError("modules", "has %d items, more than %d", len(e.Modules), MaxModules)
	}
	for _, specifier := range slices.Sorted(maps.Keys(e.Modules)) {
		if specifier == "" {
			return FieldError("modules", "has an empty specifier")
		}
		if err := checkText(modulePath(specifier), specifier, MaxSpecifierBytes); err != nil {
			return err
		}
		if isReserved(specifier) {
			return FieldError(modulePath(specifier), "must not start with %q, but with %q", reservedScheme, moduleScheme)
		}
		if err := e.Modules[specifier].validate(modulePath(specifier)); err != nil {
			return err
		}
	}
	return nil
}

func (m ModuleSource) validate(path string) error {
	err := oneOf(path+".type", m.Type, ModuleESM, ModuleCommonJS, ModuleJSON, ModuleText, ModuleBytes)
	switch {
	case err != nil:
		return err
	case len(m.Source) > MaxCodeBytes:
		return FieldError(path+".source", "has %d bytes, more than %d", len(m.Source), MaxCodeBytes)
	case !utf8.ValidString(m.Source):
		return FieldError(path+".source", "must be valid UTF-8")
	case m.Type == ModuleBytes:
		if _, ok := decodeBase64(m.Source); !ok {
			return FieldError(path+".source", "must be base64 with padding")
		}
	}
	return nil
}

func validTrace(t *Trace) error {
	if t == nil {
		return nil
	}
	if err := checkText("trace.traceparent", t.Traceparent, MaxTraceBytes); err != nil {
		return err
	}
	return checkText("trace.tracestate", t.Tracestate, MaxTraceBytes)
}
