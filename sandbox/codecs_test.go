package sandbox

import (
	"bytes"
	"compress/gzip"
	"runtime"
	"strings"
	"testing"
	"time"
)

// drive opens a stream, writes each input, finishes it and returns all output.
func drive(s services, format string, decompress bool, inputs ...[]byte) ([]byte, error) {
	mode := 0.0
	if decompress {
		mode = 1
	}
	handle, err := s.Op([]any{"compression.open", format, mode})
	if err != nil {
		return nil, err
	}
	var out []byte
	collect := func(args ...any) error {
		for {
			v, err := s.Op(args)
			if err != nil || v == nil {
				return err
			}
			out = append(out, v.([]byte)...)
			args = []any{"compression.read", handle}
		}
	}
	for _, input := range inputs {
		if err := collect("compression.write", handle, input); err != nil {
			return out, err
		}
	}
	if err := collect("compression.finish", handle); err != nil {
		return out, err
	}
	_, err = s.Op([]any{"compression.close", handle})
	return out, err
}

func TestCompressionRoundTrip(t *testing.T) {
	s := services{}.begin()
	defer s.end()
	want := bytes.Repeat([]byte("round and round "), 20_000)
	for _, format := range []string{"gzip", "deflate", "deflate-raw", "brotli"} {
		t.Run(format, func(t *testing.T) {
			packed, err := drive(s, format, false, want[:100], nil, want[100:])
			if err != nil || len(packed) > len(want)/10 {
				t.Fatal(len(packed), err)
			}
			var bytewise [][]byte
			for i := range packed {
				bytewise = append(bytewise, packed[i:i+1])
			}
			for name, inputs := range map[string][][]byte{"whole": {packed}, "byte by byte": bytewise} {
				got, err := drive(s, format, true, inputs...)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes, %v", name, len(got), err)
				}
			}
			if _, err := drive(s, format, true, packed[:len(packed)-1]); err == nil {
				t.Error("data cut short was taken")
			}
			for name, inputs := range map[string][][]byte{
				"extra byte": {append(bytes.Clone(packed), 0)}, "extra byte later": {packed, {0}}, "two members": {packed, packed},
			} {
				if got, err := drive(s, format, true, inputs...); err == nil || !strings.HasPrefix(err.Error(), "TypeError: ") {
					t.Errorf("%s: %d bytes, %v", name, len(got), err)
				}
			}
		})
	}
	if len(s.codecs.open) != 0 {
		t.Errorf("%d streams are still open", len(s.codecs.open))
	}
}

func TestCompressionIsBounded(t *testing.T) {
	s := services{}.begin()
	defer s.end()
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	_, _ = w.Write(make([]byte, 10<<20))
	_ = w.Close()
	handle, _ := s.Op([]any{"compression.open", "gzip", 1.0})
	v, err := s.Op([]any{"compression.write", handle, bomb.Bytes()})
	if piece, _ := v.([]byte); err != nil || len(piece) == 0 || len(piece) > pieceBytes {
		t.Errorf("%d bytes at once, %v", len(piece), err)
	}
	if _, err := s.Op([]any{"compression.write", handle, []byte{1}}); err == nil {
		t.Error("input was taken before the output was read")
	}
}

func TestCompressionHandles(t *testing.T) {
	before := runtime.NumGoroutine()
	s := services{}.begin()
	opened := 0
	for range maxCodecs + 1 {
		if _, err := s.Op([]any{"compression.open", "gzip", 1.0}); err == nil {
			opened++
		}
	}
	if opened != maxCodecs {
		t.Errorf("%d streams could be opened", opened)
	}
	for _, args := range [][]any{
		{"compression.write", 99.0, []byte{1}}, {"compression.finish"}, {"compression.read", "x"}, {"compression.open", "zip", 0.0}, {"compression.open"},
	} {
		if _, err := s.Op(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
	s.end()
	for range 1000 { // the last steps of a goroutine are not ours to see
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after the execution ended", before, after)
	}
}
