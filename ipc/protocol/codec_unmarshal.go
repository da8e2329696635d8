package protocol

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Unmarshal decodes v, within ValueBounds, into what the pointer into points to. Plain JSON goes where encoding/json
// would put it, and whole numbers into integers however they are written. Tags go where their Go type is: @date into
// time.Time (the zero Time when invalid), @bigint into *big.Int or an integer that holds it, @bytes and @buffer into
// []byte, @set into a slice, @map into a map, @url into *url.URL or string, @error into error, @boxed as what is in it,
// @number into floats, @blob and @file into []byte, @headers into http.Header or another map of strings or of lists of
// them, @formdata without files into url.Values and its like; undefined and holes are null. A target of type any gets nil, bool, float64, string, []any,
// map[string]any, []byte, time.Time, *big.Int, *RegExp, *URL, *Map, *Set, *ErrorValue, *Buffer, *Blob, *File, *Headers,
// *FormData, *RequestValue, *ResponseValue or Handle; one of a type
// of the codec gets it exactly as Decode makes it; a Value gets the text.
//
// References become copies; a value that contains itself is an error, and so are more than a million values that copies
// and holes add. Lone surrogates become U+FFFD. The error is a *TextError, a *ValueError, or that of an Unmarshaler.
func Unmarshal(v Value, into any) error {
	dst := reflect.ValueOf(into)
	if dst.Kind() != reflect.Pointer || dst.IsNil() {
		return fmt.Errorf("cannot decode into %T: not a pointer to something", into)
	}
	t, err := parseTree(v, ValueBounds)
	if err != nil {
		return err
	}
	u := unmarshaler{tree: t, left: int64(len(t.nodes)) + maxCopies}
	return u.into(0, dst.Elem())
}

// maxCopies is how many values references and holes may add to those of the text.
const maxCopies = 1 << 20

// unmarshaler makes ordinary Go values. It recurses as deep as the text and the copies in it are nested.
type unmarshaler struct {
	*tree
	left  int64    // values that may still be made
	depth int      // values under way, those in copies included
	exact *decoder // for targets of the codec's types; has decoded all of the text
}

func (u *unmarshaler) spend(n int32, values int64) error {
	if u.left -= values; u.left < 0 {
		return u.fault(n, fmt.Sprintf("copies and holes make more than %d values", maxCopies))
	}
	return nil
}

// enter begins the value at n, to be ended with leave. Copies in copies can nest deeper than the text.
func (u *unmarshaler) enter(n int32) error {
	if u.depth++; u.depth > 2*MaxDepth {
		return u.fault(n, "copies nested too deep")
	}
	return u.spend(n, 1)
}

func (u *unmarshaler) leave() { u.depth-- }

// exactValue returns what Decode makes for the value at n. All of the text is decoded first, so that references find
// their objects made.
func (u *unmarshaler) exactValue(n int32) (any, error) {
	if u.exact == nil {
		d := newDecoder(u.tree)
		if _, err := d.value(0); err != nil {
			return nil, err
		}
		u.exact = d
	}
	return u.exact.value(n)
}

// copied finds what the reference at n leads to. What comes before it can lead only further back, so copying ends.
func (u *unmarshaler) copied(n, body int32) (int32, error) {
	target, err := u.target(n, body)
	if err == nil && u.nodes[target].next > n {
		err = u.fault(n, "the value contains itself: use Decode")
	}
	return target, err
}

// exactTypes are the types of the codec. As targets they get what Decode makes.
var exactTypes = map[reflect.Type]bool{
	reflect.TypeFor[Object](): true, reflect.TypeFor[Array](): true, reflect.TypeFor[Map](): true,
	reflect.TypeFor[Set](): true, reflect.TypeFor[Date](): true, reflect.TypeFor[RegExp](): true,
	reflect.TypeFor[URL](): true, reflect.TypeFor[ErrorValue](): true, reflect.TypeFor[Buffer](): true,
	reflect.TypeFor[Boxed](): true, reflect.TypeFor[Undefined](): true, reflect.TypeFor[UTF16](): true,
	reflect.TypeFor[Handle](): true, reflect.TypeFor[Blob](): true, reflect.TypeFor[File](): true,
	reflect.TypeFor[Headers](): true, reflect.TypeFor[FormData](): true, reflect.TypeFor[RequestValue](): true,
	reflect.TypeFor[ResponseValue](): true,
}

// into decodes the value at n into dst.
func (u *unmarshaler) into(n int32, dst reflect.Value) error {
	if err := u.enter(n); err != nil {
		return err
	}
	defer u.leave()
	tag, body := u.tag(n)
	if tag == "@ref" && dst.Kind() != reflect.Pointer && !exactTypes[dst.Type()] && dst.Type() != rawType {
		target, err := u.copied(n, body)
		if err != nil {
			return err
		}
		return u.into(target, dst)
	}
	switch {
	case dst.Type() == rawType:
		return u.rawValue(n, dst)
	case exactTypes[dst.Type()]:
		return u.exactly(n, dst)
	case u.nodes[n].kind == 'n', tag == "@undefined":
		return u.null(n, tag, body, dst)
	case dst.Kind() == reflect.Pointer:
		return u.pointer(n, dst)
	case dst.Kind() == reflect.Interface:
		return u.iface(n, tag, dst)
	case tag != "":
		return u.tagInto(n, tag, body, dst)
	}
	if done, err := u.custom(n, dst); done || err != nil {
		return err
	}
	return u.kind(n, dst)
}

var (
	rawType    = reflect.TypeFor[Value]()
	timeType   = reflect.TypeFor[time.Time]()
	bigType    = reflect.TypeFor[big.Int]()
	urlType    = reflect.TypeFor[url.URL]()
	errorType  = reflect.TypeFor[error]()
	numberType = reflect.TypeFor[json.Number]()
)

func (u *unmarshaler) mismatch(n int32, dst reflect.Value) error {
	what := "the number " + fmt.Sprintf("%.40s", u.raw(n))
	switch u.nodes[n].kind {
	case 'n':
		what = "null"
	case 't', 'f':
		what = "a boolean"
	case '"':
		what = "a string"
	case '[':
		what = "an array"
	case '{':
		what = "an object"
	}
	if tag, _ := u.tag(n); tag != "" {
		what = tag
	}
	return u.fault(n, fmt.Sprintf("%s does not fit Go type %s", what, dst.Type()))
}

// rawValue takes the text of a part. References count from the root of the whole: a part that has some is encoded anew, and
// one that refers to what is around it or elsewhere is refused.
func (u *unmarshaler) rawValue(n int32, dst reflect.Value) error {
	anew := false
	for i := n; n > 0 && i < u.nodes[n].next; i++ {
		if tag, body := u.tag(i); tag == "@ref" {
			if target, err := u.target(i, body); err != nil || target < n {
				return u.fault(n, "a part with references to others cannot be taken out as text")
			}
			anew = true
		}
	}
	if !anew {
		dst.SetBytes(bytes.Clone(u.raw(n)))
		return nil
	}
	v, err := u.exactValue(n)
	if err != nil {
		return err
	}
	text, err := Encode(v)
	dst.SetBytes(text)
	return err
}

func (u *unmarshaler) exactly(n int32, dst reflect.Value) error {
	v, err := u.exactValue(n)
	if err != nil {
		return err
	}
	got := reflect.ValueOf(v)
	if got.Kind() == reflect.Pointer {
		got = got.Elem()
	}
	if !got.IsValid() || got.Type() != dst.Type() {
		return u.mismatch(n, dst)
	}
	dst.Set(got)
	return nil
}

// null is what encoding/json does with null.
func (u *unmarshaler) null(n int32, tag string, body int32, dst reflect.Value) error {
	if tag != "" {
		if _, err := u.leaf(n, tag, body); err != nil {
			return err
		}
	}
	switch dst.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		dst.SetZero()
	default:
		if j, ok := dst.Addr().Interface().(json.Unmarshaler); ok {
			return j.UnmarshalJSON([]byte("null"))
		}
	}
	return nil
}

// pointer decodes into what dst points to, made new if nil. Pointers to the types of the codec keep its identity.
func (u *unmarshaler) pointer(n int32, dst reflect.Value) error {
	if exactTypes[dst.Type().Elem()] {
		v, err := u.exactValue(n)
		if err != nil {
			return err
		}
		if got := reflect.ValueOf(v); got.IsValid() && got.Type() == dst.Type() {
			dst.Set(got)
			return nil
		}
	}
	if dst.IsNil() {
		dst.Set(reflect.New(dst.Type().Elem()))
	}
	return u.into(n, dst.Elem())
}

func (u *unmarshaler) iface(n int32, tag string, dst reflect.Value) error {
	if dst.Type() == errorType && tag == "@error" {
		v, err := u.plainValue(n)
		if err == nil {
			dst.Set(reflect.ValueOf(v))
		}
		return err
	}
	if dst.NumMethod() > 0 {
		return u.mismatch(n, dst)
	}
	if e := dst.Elem(); e.Kind() == reflect.Pointer && !e.IsNil() { // as encoding/json: fill what is there
		return u.into(n, e)
	}
	v, err := u.plainValue(n)
	if err != nil {
		return err
	}
	if dst.SetZero(); v != nil {
		dst.Set(reflect.ValueOf(v))
	}
	return nil
}

// custom lets a type that reads JSON or text by itself do so.
func (u *unmarshaler) custom(n int32, dst reflect.Value) (done bool, err error) {
	if !dst.CanAddr() || dst.Type().Name() == "" {
		return false, nil
	}
	switch target := dst.Addr().Interface().(type) {
	case json.Unmarshaler:
		for i := n; i < u.nodes[n].next; i++ {
			if tag, _ := u.tag(i); tag != "" {
				return true, u.fault(i, fmt.Sprintf("%s does not fit %s, which takes plain JSON", tag, dst.Type()))
			}
		}
		return true, target.UnmarshalJSON(u.raw(n))
	case encoding.TextUnmarshaler:
		if u.isString(n) {
			return true, target.UnmarshalText([]byte(wellFormed(u.str(n))))
		}
	}
	return false, nil
}

// kind decodes an untagged value by the kind of its target.
func (u *unmarshaler) kind(n int32, dst reflect.Value) error {
	switch kind := u.nodes[n].kind; {
	case kind == '[':
		return u.list(n, n, dst)
	case kind == '{':
		return u.object(n, dst)
	case kind == '"':
		return u.stringInto(n, wellFormed(u.str(n)), dst)
	case kind == 't' || kind == 'f':
		if dst.Kind() != reflect.Bool {
			return u.mismatch(n, dst)
		}
		dst.SetBool(kind == 't')
		return nil
	}
	return u.numberInto(n, dst)
}

func (u *unmarshaler) stringInto(n int32, s string, dst reflect.Value) error {
	switch {
	case dst.Type() == numberType:
		if Check([]byte(s), ValueBounds) != nil || s[0] != '-' && s[0]-'0' > 9 {
			return u.mismatch(n, dst)
		}
		dst.SetString(s)
	case dst.Kind() == reflect.String:
		dst.SetString(s)
	case dst.Kind() == reflect.Slice && dst.Type().Elem().Kind() == reflect.Uint8:
		data, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return u.fault(n, "a string that is not base64 does not fit bytes")
		}
		dst.SetBytes(data)
	default:
		return u.mismatch(n, dst)
	}
	return nil
}

func (u *unmarshaler) numberInto(n int32, dst reflect.Value) error {
	if dst.Type() == numberType {
		dst.SetString(string(u.raw(n)))
		return nil
	}
	f, err := u.number(n)
	if err != nil {
		return err
	}
	if dst.CanFloat() {
		return u.float(n, f, dst)
	}
	text := string(u.raw(n))
	if strings.ContainsAny(text, ".eE") { // written as a float: a whole number all the same?
		if f != math.Trunc(f) || math.Abs(f) > 1e30 {
			return u.mismatch(n, dst)
		}
		text = strconv.FormatFloat(f, 'f', -1, 64)
	}
	return u.integer(n, text, dst)
}

func (u *unmarshaler) float(n int32, f float64, dst reflect.Value) error {
	if !math.IsInf(f, 0) && dst.OverflowFloat(f) {
		return u.mismatch(n, dst)
	}
	dst.SetFloat(f)
	return nil
}

// integer stores decimal digits.
func (u *unmarshaler) integer(n int32, digits string, dst reflect.Value) error {
	switch {
	case dst.CanInt():
		if i, err := strconv.ParseInt(digits, 10, 64); err == nil && !dst.OverflowInt(i) {
			dst.SetInt(i)
			return nil
		}
	case dst.CanUint():
		if i, err := strconv.ParseUint(digits, 10, 64); err == nil && !dst.OverflowUint(i) {
			dst.SetUint(i)
			return nil
		}
	}
	return u.mismatch(n, dst)
}
