package codemode

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/protocol"
)

// limitRow is a value, as Value text, and what a model reads of it in that many code units. An error is what there is no text for.
type limitRow struct {
	Value json.RawMessage `json:"value"`
	Limit int             `json:"limit"`
	Want  string          `json:"want,omitempty"`
	Error string          `json:"error,omitempty"`
}

const limitFile = "testdata/limit.jsonl"

// -update writes what the texts are now: read the diff.
func TestTextsOfResults(t *testing.T) {
	var anew bytes.Buffer
	e := json.NewEncoder(&anew)
	e.SetEscapeHTML(false)
	for _, row := range rows[limitRow](t, limitFile) {
		got, err := Text(protocol.Value(row.Value), row.Limit)
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		if !*update && (got != row.Want || fault != row.Error) {
			t.Errorf("%s in %d is\n%s %s\nwant\n%s %s", row.Value, row.Limit, got, fault, row.Want, row.Error)
		}
		row.Want, row.Error = got, fault
		if err := e.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(limitFile, anew.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLongResultsAreCutInside(t *testing.T) {
	long := strings.Repeat("0123456789", 10_000)
	rows := make([]map[string]any, 3000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "text": long[:50]}
	}
	value, err := protocol.Marshal(map[string]any{"a_short": "kept", "b_long": long, "c_rows": rows, "d_emoji": strings.Repeat("😀", 30_000)})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{200, 2000, 24_000, 1_000_000} {
		text, err := Text(value, limit)
		if err != nil || units(text) > limit {
			t.Fatalf("%d units, %v, want at most %d", units(text), err, limit)
		}
		var back struct {
			Short string          `json:"a_short"`
			Rows  json.RawMessage `json:"c_rows"`
		}
		if err := json.Unmarshal([]byte(text), &back); err != nil || back.Short != "kept" {
			t.Errorf("in %d it is no JSON of its shape: %v: %.300s", limit, err, text)
		}
		if cut := strings.Contains(text, truncated); cut != (limit < 1_000_000) {
			t.Errorf("in %d it says that it is cut: %t", limit, cut)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, row := range rows[limitRow](f, limitFile) {
		f.Add([]byte(row.Value), row.Limit)
	}
	f.Fuzz(func(t *testing.T, value []byte, limit int) {
		limit = 1 + max(0, limit)%5000
		text, err := Text(value, limit)
		if err != nil {
			return
		}
		if units(text) > limit {
			t.Fatalf("%q in %d has %d units: %q", value, limit, units(text), text)
		}
		graph, _ := asJSON(value)
		switch graph.(type) {
		case string, protocol.UTF16, protocol.Undefined:
		default:
			if limit > 100 && !json.Valid([]byte(text)) {
				t.Fatalf("%q in %d is no JSON: %q", value, limit, text)
			}
		}
	})
}
