package sourcemap

import "testing"

func TestSourceMap(t *testing.T) {
	m, err := Parse([]byte(`{"version":3,"sources":["a"],"mappings":"AAAA,IAAI;;AACJ,MAAM,CAAC,EAAIA,gBADC"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name                               string
		line, column, wantLine, wantColumn int
	}{
		{"first", 1, 1, 1, 1},
		{"between", 1, 4, 1, 1},
		{"second", 1, 5, 1, 5},
		{"behind", 1, 90, 1, 5},
		{"a line without mappings", 2, 3, 1, 5},
		{"next line", 3, 1, 2, 1},
		{"next line, second", 3, 7, 2, 7},
		{"with a name", 3, 10, 2, 12},
		{"backwards", 3, 26, 1, 13},
		{"past the end", 9, 9, 1, 13},
	} {
		if l, k := m.Locate(c.line, c.column); l != c.wantLine || k != c.wantColumn {
			t.Errorf("%s: %d:%d comes from %d:%d, want %d:%d", c.name, c.line, c.column, l, k, c.wantLine, c.wantColumn)
		}
	}
	for _, text := range []string{"", `{"version":2}`, `{"version":3,"mappings":"!"}`, `{"version":3,"mappings":"g"}`, `{"version":3,"mappings":"gggggggggggggggggggg"}`} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

func FuzzSourceMap(f *testing.F) {
	f.Add(`{"version":3,"mappings":"AAAA;CACA"}`, 1, 1)
	f.Fuzz(func(_ *testing.T, text string, line, column int) {
		if m, err := Parse([]byte(text)); err == nil {
			m.Locate(line, column)
		}
	})
}
