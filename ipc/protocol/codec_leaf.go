package protocol

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// leaf decodes a tag that holds no Values of its own, or only primitives.
func (t *tree) leaf(n int32, tag string, body int32) (any, error) {
	switch tag {
	case "@undefined":
		if t.nodes[body].kind != 't' {
			return nil, t.fault(n, "@undefined is true")
		}
		return Undefined{}, nil
	case "@number":
		return t.specialNumber(n, body)
	case "@bigint":
		return t.bigint(n, body)
	case "@utf16":
		return t.utf16(n, body)
	case "@date":
		return t.date(n, body)
	case "@regexp":
		return t.regexp(n, body)
	case "@url":
		if !t.isString(body) {
			return nil, t.fault(n, "@url is a string")
		}
		return &URL{t.key(body)}, nil
	case "@bytes":
		return t.buffer(n, "Uint8Array", body)
	case "@buffer":
		if !t.isArray(body, 2) || !t.isString(body+1) {
			return nil, t.fault(n, "@buffer is a kind and base64")
		}
		return t.buffer(n, t.key(body+1), body+2)
	case "@boxed":
		return t.boxed(n, body)
	case "@handle":
		return t.handle(n, body)
	case "@hole":
		return nil, t.fault(n, "@hole stands only in an array")
	}
	return t.web(n, tag, body)
}

func (t *tree) handle(n, body int32) (any, error) {
	if t.isString(body) {
		return Handle{ID: t.key(body)}, nil
	}
	if t.isArray(body, 2) && t.isString(body+1) && t.isString(body+2) {
		if kind := HandleKind(t.key(body + 2)); kind == HandleIterator || kind == HandleStream {
			return Handle{t.key(body + 1), kind}, nil
		}
	}
	return nil, t.fault(n, `@handle is a string, or one and "iterator" or "stream"`)
}

var specialNumbers = map[string]float64{
	"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "-0": math.Copysign(0, -1),
}

func (t *tree) specialNumber(n, body int32) (any, error) {
	if t.isString(body) {
		if f, ok := specialNumbers[t.key(body)]; ok {
			return f, nil
		}
	}
	return nil, t.fault(n, `@number is "NaN", "Infinity", "-Infinity" or "-0"`)
}

func (t *tree) bigint(n, body int32) (any, error) {
	if !t.isString(body) {
		return nil, t.fault(n, "@bigint is a whole number in decimal")
	}
	text := t.key(body)
	if len(text) > maxBigIntDigits+len("-") {
		return nil, t.fault(n, fmt.Sprintf("a BigInt has more than %d bits", MaxBigIntBits))
	}
	i, ok := parseBigInt(text)
	switch {
	case !ok:
		return nil, t.fault(n, "@bigint is a whole number in decimal")
	case i.BitLen() > MaxBigIntBits:
		return nil, t.fault(n, fmt.Sprintf("a BigInt has more than %d bits", MaxBigIntBits))
	}
	return i, nil
}

// parseBigInt reads the one decimal text of an integer: no plus, no leading zero, no minus zero.
func parseBigInt(s string) (*big.Int, bool) {
	digits := s
	if digits != "" && digits[0] == '-' {
		digits = digits[1:]
	}
	if digits == "" || digits[0] == '0' && s != "0" {
		return nil, false
	}
	for i := range len(digits) {
		if digits[i]-'0' > 9 {
			return nil, false
		}
	}
	i := bigDecimal(digits)
	if s[0] == '-' {
		i.Neg(i)
	}
	return i, true
}

// bigDecimal reads digits by halves. Int.SetString takes time that grows with the square of the length, and the
// length is an adversary's to choose.
func bigDecimal(digits string) *big.Int {
	const direct = 2000
	if len(digits) <= direct {
		i, _ := new(big.Int).SetString(digits, 10)
		return i
	}
	low := len(digits) / 2
	high := bigDecimal(digits[:len(digits)-low])
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(low)), nil)
	return high.Add(high.Mul(high, scale), bigDecimal(digits[len(digits)-low:]))
}

func (t *tree) utf16(n, body int32) (any, error) {
	data, ok := t.base64(body)
	if !ok || len(data)%2 != 0 {
		return nil, t.fault(n, "@utf16 is base64 of code units of two bytes")
	}
	u := make(UTF16, len(data)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(data[2*i:])
	}
	if s, ok := u.text(); ok {
		return s, nil
	}
	return u, nil
}

func (t *tree) base64(n int32) ([]byte, bool) {
	if !t.isString(n) {
		return nil, false
	}
	return decodeBase64(t.key(n))
}

func (t *tree) date(n, body int32) (any, error) {
	if t.nodes[body].kind == 'n' {
		return &Date{math.NaN()}, nil
	}
	ms, err := strconv.ParseFloat(string(t.raw(body)), 64)
	if err != nil || ms != math.Trunc(ms) || math.Abs(ms) > maxDateMs {
		return nil, t.fault(n, "@date is whole milliseconds of at most 8.64e15, or null")
	}
	return &Date{ms + 0}, nil // -0 becomes 0
}

func (t *tree) regexp(n, body int32) (any, error) {
	if !t.isArray(body, 2) || !t.isString(body+1) || !t.isString(body+2) {
		return nil, t.fault(n, "@regexp is a source and flags")
	}
	r := &RegExp{t.key(body + 1), t.key(body + 2)}
	if !validFlags(r.Flags) {
		return nil, t.fault(n, "@regexp has flags that no RegExp can have")
	}
	return r, nil
}

// buffer decodes the base64 at body.
func (t *tree) buffer(n int32, kind string, body int32) (any, error) {
	size := elementBytes[kind]
	if size == 0 {
		return nil, t.fault(n, fmt.Sprintf("%.80q is no kind of buffer", kind))
	}
	data, ok := t.base64(body)
	switch {
	case !ok:
		return nil, t.fault(n, "bytes are base64 with padding")
	case len(data)%size != 0:
		return nil, t.fault(n, fmt.Sprintf("%d bytes are no whole elements of %s", len(data), kind))
	}
	return &Buffer{kind, data}, nil
}

func (t *tree) boxed(n, body int32) (any, error) {
	const rule = "@boxed is an array of one boolean, number, string or BigInt"
	if !t.isArray(body, 1) {
		return nil, t.fault(n, rule)
	}
	v, err := t.primitive(body + 1)
	if err == nil && !isBoxable(v) {
		err = t.fault(n, rule)
	}
	if err != nil {
		return nil, err
	}
	return &Boxed{v}, nil
}

// primitive decodes the value at n if it is one that can be boxed; of other values it may return anything that is not.
func (t *tree) primitive(n int32) (any, error) {
	switch t.nodes[n].kind {
	case 't', 'f':
		return t.nodes[n].kind == 't', nil
	case '"':
		return t.stringValue(n), nil
	case 'n', '[':
		return nil, nil
	case '{':
		switch tag, body := t.tag(n); tag {
		case "@number", "@bigint", "@utf16":
			return t.leaf(n, tag, body)
		}
		return nil, nil
	}
	return t.number(n)
}
