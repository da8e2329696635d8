// Package sourcemap reads source maps (ECMA-426), as what takes the types out of TypeScript writes them. A Map does not change.
package sourcemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Map turns places in a generated text into places in the text it was made of. Columns are in UTF-16 units.
type Map struct{ lines [][]segment }

// segment says, with lines and columns from 0, that what stands at column of the generated line comes from a place in the source.
type segment struct{ column, sourceLine, sourceColumn int }

// Parse reads the mappings of a map with one source. An error says that it is none of version 3, or broken.
func Parse(text []byte) (*Map, error) {
	var file struct {
		Version  int    `json:"version"`
		Mappings string `json:"mappings"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("cannot read the source map: %w", err)
	}
	if file.Version != 3 {
		return nil, fmt.Errorf("cannot read the source map: it is of version %d", file.Version)
	}
	m := &Map{}
	var at segment
	for line := range strings.SplitSeq(file.Mappings, ";") {
		var segments []segment
		at.column = 0
		for field := range strings.SplitSeq(line, ",") {
			if field == "" {
				continue
			}
			ok, err := at.advance(field)
			if err != nil {
				return nil, err
			}
			if ok {
				segments = append(segments, at)
			}
		}
		m.lines = append(m.lines, segments)
	}
	return m, nil
}

var errMapping = errors.New("cannot read the source map: a mapping is not base64 VLQ")

// advance adds the differences of one mapping; false when it has no source.
func (s *segment) advance(field string) (bool, error) {
	var fields []int
	for field != "" {
		n, rest, err := decodeVLQ(field)
		if err != nil {
			return false, err
		}
		fields, field = append(fields, n), rest
	}
	s.column += fields[0]
	if len(fields) < 4 {
		return false, nil
	}
	s.sourceLine += fields[2]
	s.sourceColumn += fields[3]
	return true, nil
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// decodeVLQ reads a number: base64 digits of five bits each, the lowest first, the sixth bit says that more follow; the
// lowest bit of the number is its sign.
func decodeVLQ(s string) (n int, rest string, err error) {
	for shift, i := 0, 0; i < len(s) && shift < 60; shift, i = shift+5, i+1 {
		digit := strings.IndexByte(base64Digits, s[i])
		if digit < 0 {
			return 0, "", errMapping
		}
		n |= digit & 31 << shift
		if digit&32 == 0 {
			if n&1 != 0 {
				return -(n >> 1), s[i+1:], nil
			}
			return n >> 1, s[i+1:], nil
		}
	}
	return 0, "", errMapping
}

// Locate returns where a place of the generated text comes from; lines and columns count from 1, as in V8. A place
// before the first mapping of its line belongs to the mapping before it.
func (m *Map) Locate(line, column int) (int, int) {
	for l := min(line, len(m.lines)) - 1; l >= 0; l-- {
		segments := m.lines[l]
		n := len(segments)
		if l == line-1 {
			n = sort.Search(len(segments), func(i int) bool { return segments[i].column > column-1 })
		}
		if n > 0 {
			s := segments[n-1]
			return s.sourceLine + 1, s.sourceColumn + 1
		}
	}
	return 1, 1
}
