package settings

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/executord/executord/daemon/pool"
)

// declaration is one setting, as the tags of its field say.
type declaration struct {
	name, variable string
	group          string
	unit           string
	placeholder    string
	help           string
	def            string // as it would be written
	auto           string
	enum           []string
	least, most    int64 // of a number, of nanoseconds, of bytes, of entries; see Settings
	sep            string
	reload, secret bool
	limit          string // in protocol.Limits

	typ   reflect.Type
	index []int // of the field
}

// declared are the settings of Settings in their order.
var declared = declare(reflect.TypeFor[Settings]())

// declare reads the tags of t. A tag that cannot be read is a fault of the program: it panics.
func declare(t reflect.Type) (list []declaration) {
	limits := map[string]pool.Limit{}
	for _, l := range pool.Limits() {
		limits[l.Name] = l
	}
	for _, f := range reflect.VisibleFields(t) {
		if len(f.Index) == 1 && f.Tag.Get("prefix") != "" {
			for _, d := range declare(f.Type) {
				d.name = f.Tag.Get("prefix") + d.name
				d.variable = f.Tag.Get("envprefix") + d.variable
				d.group = cmp.Or(d.group, f.Tag.Get("group"))
				_, reload := f.Tag.Lookup("reload")
				d.reload = d.reload || reload
				d.index = append([]int{f.Index[0]}, d.index...)
				if l, is := limits[d.limit]; is {
					d.takeLimit(l, f.Tag.Get("prefix") == "max-")
				}
				list = append(list, d)
			}
		} else {
			list = append(list, declareField(f))
		}
	}
	return list
}

func declareField(f reflect.StructField) declaration {
	tag := f.Tag
	d := declaration{
		name: tag.Get("name"), variable: tag.Get("env"), group: tag.Get("group"), unit: tag.Get("unit"),
		help: tag.Get("help"), def: tag.Get("default"), auto: tag.Get("auto"), sep: tag.Get("sep"), limit: tag.Get("limit"),
		placeholder: cmp.Or(tag.Get("placeholder"), "N"), typ: f.Type, index: f.Index,
	}
	_, d.reload = tag.Lookup("reload")
	_, d.secret = tag.Lookup("secret")
	if d.isDuration() {
		d.placeholder, d.unit = "TIME", "duration"
	}
	if enum := tag.Get("enum"); enum != "" {
		d.enum = strings.Split(enum, ",")
	}
	if b := tag.Get("bounds"); b != "" {
		least, most, _ := strings.Cut(b, "..")
		d.least, d.most = d.bound(least), d.bound(most)
	}
	return d
}

// bound reads one end of the bounds.
func (d *declaration) bound(text string) int64 {
	var n int64
	target := reflect.ValueOf(&n).Elem()
	if d.isDuration() {
		target = reflect.NewAt(reflect.TypeFor[time.Duration](), target.Addr().UnsafePointer()).Elem()
	}
	if reason := decodeScalar(target, text, d.unit); reason != "" {
		panic(fmt.Sprintf("settings: the bound %q of %s: %s", text, d.name, reason))
	}
	return n
}

// takeLimit completes the declaration of a limit with what package pool knows of it.
func (d *declaration) takeLimit(l pool.Limit, largest bool) {
	n := l.Usual
	if largest {
		n = l.Highest
	}
	d.least, d.most, d.unit = l.Least, l.Most, l.Unit
	d.def = fmt.Sprint(n)
	if d.isDuration() {
		ms := int64(time.Millisecond)
		d.least, d.most, d.unit = l.Least*ms, l.Most*ms, "duration"
		d.def = durationText(time.Duration(n * ms))
	}
	switch d.unit {
	case "MiB", "KiB", "bytes":
		d.placeholder = strings.ToUpper(d.unit)
	}
}

func (d *declaration) isDuration() bool { return d.typ == reflect.TypeFor[time.Duration]() }

func (d *declaration) isList() bool { return d.typ.Kind() == reflect.Slice }

// in is the field of s.
func (d *declaration) in(s *Settings) reflect.Value {
	return reflect.ValueOf(s).Elem().FieldByIndex(d.index)
}

// show is the value as it would be written, unless it is a secret.
func (d *declaration) show(v reflect.Value) string {
	text := encode(v)
	if d.secret && text != "" {
		return "set"
	}
	return text
}

// byDefault says what the default is, for people.
func (d *declaration) byDefault() string {
	switch {
	case d.auto != "":
		return d.auto
	case sizes[d.unit] > 0:
		return d.def + " " + d.unit
	}
	return d.def
}

func find(name string) *declaration {
	for i := range declared {
		if declared[i].name == name {
			return &declared[i]
		}
	}
	panic("settings: there is no --" + name)
}
