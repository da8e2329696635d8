package v8

// #include "engine.h"
import "C"

import (
	"runtime/cgo"
	"strings"
	"unsafe"
)

func host(h C.uintptr_t) Host { return cgo.Handle(h).Value().(Host) }

//export goToolCall
func goToolCall(h C.uintptr_t, id C.uint64_t, provider C.ex_view, path *C.ex_view, n C.size_t, args C.ex_view) C.int {
	steps := make([]string, n)
	for i, v := range unsafe.Slice(path, n) {
		steps[i] = text(v)
	}
	return cbool(host(h).ToolCall(uint64(id), text(provider), steps, unsafe.Slice((*byte)(unsafe.Pointer(args.p)), args.n)))
}

//export goLog
func goLog(h C.uintptr_t, level, line C.ex_view) { host(h).Log(text(level), text(line)) }

//export goTimerStart
func goTimerStart(h C.uintptr_t, ms C.double, repeat C.int) C.uint32_t {
	return C.uint32_t(host(h).TimerStart(float64(ms), repeat != 0))
}

//export goTimerStop
func goTimerStop(h C.uintptr_t, id C.uint32_t) { host(h).TimerStop(uint32(id)) }

//export goResolveModule
func goResolveModule(h C.uintptr_t, specifier, referrer, typ C.ex_view, key, source, names *C.ex_buf) C.int {
	m, err := host(h).ResolveModule(text(specifier), text(referrer), text(typ))
	if err != nil {
		*source = cbuf(err.Error())
		return C.EX_MODULE_NONE
	}
	*key, *source, *names = cbuf(m.Key), cbuf(m.Source), cbuf(strings.Join(m.Names, "\n"))
	return C.int(m.Kind)
}

//export goOp
func goOp(h C.uintptr_t, p *C.ex_arg, n C.int) C.ex_reply {
	args := make([]any, n)
	for i, a := range unsafe.Slice(p, n) {
		switch a.kind {
		case C.EX_ARG_NUMBER:
			args[i] = float64(a.number)
		case C.EX_ARG_TEXT:
			args[i] = text(a.value)
		case C.EX_ARG_BYTES:
			args[i] = unsafe.Slice((*byte)(unsafe.Pointer(a.value.p)), a.value.n)
		}
	}
	v, err := host(h).Op(args)
	if err != nil {
		return C.ex_reply{kind: C.EX_ARG_FAULT, value: cbuf(err.Error())}
	}
	switch v := v.(type) {
	case float64:
		return C.ex_reply{kind: C.EX_ARG_NUMBER, number: C.double(v)}
	case string:
		return C.ex_reply{kind: C.EX_ARG_TEXT, value: cbuf(v)}
	case []byte:
		return C.ex_reply{kind: C.EX_ARG_BYTES, value: C.ex_buf{p: (*C.char)(C.CBytes(v)), n: C.size_t(len(v))}}
	}
	return C.ex_reply{}
}

//export goPart
func goPart(h C.uintptr_t, name C.ex_view, textOut, cache *C.ex_view) C.int {
	o, ok := cgo.Handle(h).Value().(Host)
	if !ok {
		return 0
	}
	p, ok := o.Part(text(name))
	*textOut, *cache = p.text, p.cache
	return cbool(ok)
}

//export goMapPosition
func goMapPosition(h C.uintptr_t, file C.ex_view, line, column *C.int) {
	o, ok := cgo.Handle(h).Value().(Host)
	if !ok || *line <= 0 || *column <= 0 {
		return
	}
	l, c := o.MapPosition(text(file), int(*line), int(*column))
	*line, *column = C.int(l), C.int(c)
}

//export goHint
func goHint(h C.uintptr_t, name C.ex_view) C.ex_buf {
	o, ok := cgo.Handle(h).Value().(Host)
	if !ok {
		return C.ex_buf{}
	}
	if hint := o.Hint(text(name)); hint != "" {
		return cbuf(hint)
	}
	return C.ex_buf{}
}

// cbuf copies s into C memory that the C++ side frees.
func cbuf(s string) C.ex_buf {
	return C.ex_buf{p: (*C.char)(C.CBytes([]byte(s))), n: C.size_t(len(s))}
}
