package settings

import (
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decode writes what texts say into field. The reason says what is wrong with them, to go on after "--name is …: ".
func (d *declaration) decode(field reflect.Value, texts []string) (reason string) {
	if d.isList() {
		return d.decodeList(field, texts)
	}
	text := texts[len(texts)-1] // as with every command line, the last one counts
	if len(d.enum) > 0 && !slices.Contains(d.enum, text) {
		return "it must be one of " + strings.Join(d.enum, ", ")
	}
	return decodeScalar(field, text, d.unit)
}

func (d *declaration) decodeList(field reflect.Value, texts []string) (reason string) {
	list := reflect.Zero(d.typ)
	for _, text := range texts {
		if text == "" {
			continue
		}
		for part := range strings.SplitSeq(text, d.sep) {
			if int64(list.Len()) == d.most {
				return fmt.Sprintf("it must have at most %d entries", d.most)
			}
			item := reflect.New(d.typ.Elem()).Elem()
			if reason := decodeScalar(item, strings.TrimSpace(part), d.unit); reason != "" {
				return fmt.Sprintf("%.80q: %s", part, reason)
			}
			list = reflect.Append(list, item)
		}
	}
	field.Set(list)
	return ""
}

func decodeScalar(field reflect.Value, text, unit string) (reason string) {
	if u, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return err.Error()
		}
		return ""
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		return decodeBool(field, text)
	case reflect.Uint32:
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return "it must be a whole number from 0 to 4294967295"
		}
		field.SetUint(n)
	case reflect.Int, reflect.Int64:
		if field.Type() == reflect.TypeFor[time.Duration]() {
			return decodeDuration(field, text)
		}
		return decodeNumber(field, text, unit)
	default:
		panic("settings: a field of type " + field.Type().String())
	}
	return ""
}

func decodeBool(field reflect.Value, text string) (reason string) {
	if text != "true" && text != "false" {
		return "it must be true or false"
	}
	field.SetBool(text == "true")
	return ""
}

func decodeDuration(field reflect.Value, text string) (reason string) {
	v, err := time.ParseDuration(text)
	if err != nil {
		if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 {
			return fmt.Sprintf("it must be a duration with its unit: write %ss for seconds, or %sms", text, text)
		}
		return "it must be a duration, as 500ms, 30s or 5m"
	}
	if v%time.Millisecond != 0 {
		return "it must be in whole milliseconds"
	}
	field.SetInt(int64(v))
	return ""
}

// decodeNumber knows what people write for sizes.
func decodeNumber(field reflect.Value, text, unit string) (reason string) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // the bounds refuse it
		field.SetInt(n)
		return ""
	}
	reason = "it must be a whole number of " + unit
	if bytes, ok := sizeOf(text); ok && sizes[unit] > 0 {
		return reason + write(bytes, unit)
	}
	return reason
}

// sizes are the bytes of units of size.
var sizes = map[string]int64{"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// sizeOf reads a number with a unit of size, in one of the ways that people have for it.
func sizeOf(text string) (bytes int64, ok bool) {
	digits := strings.TrimRight(text, "abgikmtBGIKMT ")
	n, err := strconv.ParseInt(digits, 10, 64)
	suffix := strings.ToLower(strings.TrimSpace(text[len(digits):]))
	of, known := map[string]int64{"b": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30}[suffix]
	if err != nil || !known || n <= 0 || n > 1<<40/of {
		return 0, false
	}
	return n * of, true
}

// write says how a size is written in a unit, where it is a whole number of it.
func write(bytes int64, unit string) string {
	if bytes%sizes[unit] != 0 {
		return ""
	}
	return fmt.Sprintf(": write %d", bytes/sizes[unit])
}

// encode is v as decode reads it.
func encode(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = encode(v.Index(i))
		}
		return strings.Join(parts, ",")
	}
	switch v := v.Interface().(type) {
	case time.Duration:
		return durationText(v)
	case slog.Level:
		return strings.ToLower(v.String())
	default:
		return fmt.Sprint(v)
	}
}

// durationText is d without the units that are zero, as 24h for 24h0m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
