package protocol

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// structField is a field of a struct as encoding/json sees it.
type structField struct {
	name      string
	index     []int
	typ       reflect.Type
	tagged    bool // the name comes from a tag
	omitEmpty bool
	omitZero  bool
	quoted    bool // numbers, booleans and strings stand in a string
}

var fieldCache sync.Map // reflect.Type → []structField

// fieldsOf returns the fields of struct type t by the rules of encoding/json: unexported ones are left out, those of
// embedded structs are promoted, of several with one name the shallowest wins, then the tagged one, else none.
func fieldsOf(t reflect.Type) []structField {
	if cached, ok := fieldCache.Load(t); ok {
		return cached.([]structField)
	}
	fields := dominant(collect(t, nil, map[reflect.Type]bool{}))
	fieldCache.Store(t, fields)
	return fields
}

// collect lists the fields of t and of the structs embedded in it; inside are the types that t is embedded in.
func collect(t reflect.Type, index []int, inside map[reflect.Type]bool) []structField {
	if inside[t] {
		return nil
	}
	inside[t] = true
	defer delete(inside, t)
	var fields []structField
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		at := append(slices.Clone(index), i)
		name, options, _ := strings.Cut(tag, ",")
		if !validFieldName(name) {
			name = ""
		}
		if embedded := structType(f.Type); f.Anonymous && embedded != nil && name == "" {
			fields = append(fields, collect(embedded, at, inside)...)
			continue
		}
		if f.IsExported() {
			fields = append(fields, newField(f, name, options, at))
		}
	}
	return fields
}

// structType returns the struct type that t is, or points to.
func structType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

func newField(f reflect.StructField, name, options string, index []int) structField {
	field := structField{name: name, index: index, typ: f.Type, tagged: name != ""}
	if name == "" {
		field.name = f.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			field.omitEmpty = true
		case "omitzero":
			field.omitZero = true
		case "string":
			field.quoted = quotable(f.Type)
		}
	}
	return field
}

func quotable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k := t.Kind()
	return k == reflect.Bool || k == reflect.String || k >= reflect.Int && k <= reflect.Float64
}

// validFieldName tells whether encoding/json takes name from a tag.
func validFieldName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// dominant resolves conflicts of names and keeps the order of declaration.
func dominant(fields []structField) []structField {
	byName := map[string][]structField{}
	for _, f := range fields {
		byName[f.name] = append(byName[f.name], f)
	}
	var kept []structField
	for _, f := range fields {
		if !slices.ContainsFunc(byName[f.name], func(rival structField) bool {
			return !slices.Equal(rival.index, f.index) && !better(f, rival)
		}) {
			kept = append(kept, f)
		}
	}
	return kept
}

func better(a, b structField) bool {
	if len(a.index) != len(b.index) {
		return len(a.index) < len(b.index)
	}
	return a.tagged && !b.tagged
}
