package protocol

import (
	"bytes"
	"math/big"
	"net/http"
	"net/url"
	"reflect"
	"testing"
)

func TestUnmarshalWebValues(t *testing.T) {
	const (
		headers = `{"@headers":[["a","1"],["b","2"],["set-cookie","c=1"],["set-cookie","d=2"]]}`
		form    = `{"@formdata":[["a","1"],["a","2"],["b",""]]}`
		files   = `{"@formdata":[["f",{"@file":{"name":"n","type":"","lastModified":1,"data":{"@bytes":"eA=="}}}]]}`
		blob    = `{"@blob":{"type":"text/plain","data":{"@bytes":"aGk="}}}`
	)
	type named map[string][]string
	for _, tt := range []struct {
		name, text string
		want       any // of the target's type
	}{
		{"http.Header", headers, http.Header{"A": {"1"}, "B": {"2"}, "Set-Cookie": {"c=1", "d=2"}}},
		{"map of lists", headers, map[string][]string{"a": {"1"}, "b": {"2"}, "set-cookie": {"c=1", "d=2"}}},
		{"named map of lists", headers, named{"a": {"1"}, "b": {"2"}, "set-cookie": {"c=1", "d=2"}}},
		{"map of strings", headers, map[string]string{"a": "1", "b": "2", "set-cookie": "c=1, d=2"}},
		{"Headers", headers, Headers{[]Header{{"a", "1"}, {"b", "2"}, {"set-cookie", "c=1"}, {"set-cookie", "d=2"}}}},
		{"url.Values", form, url.Values{"a": {"1", "2"}, "b": {""}}},
		{"FormData", form, FormData{[]FormEntry{{"a", "1"}, {"a", "2"}, {"b", ""}}}},
		{"form into any", form, any(&FormData{[]FormEntry{{"a", "1"}, {"a", "2"}, {"b", ""}}})},
		{"form with a file", files, FormData{[]FormEntry{{"f", &File{Name: "n", LastModified: 1, Data: []byte("x")}}}}},
		{"bytes of a Blob", blob, []byte("hi")},
		{"Blob", blob, Blob{"text/plain", []byte("hi")}},
		{"pointer to a Blob", blob, &Blob{"text/plain", []byte("hi")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			into := reflect.New(reflect.TypeOf(tt.want))
			if tt.name == "form into any" {
				into = reflect.ValueOf(new(any))
			}
			if err := Unmarshal(Value(tt.text), into.Interface()); err != nil || !reflect.DeepEqual(into.Elem().Interface(), tt.want) {
				t.Errorf("got %#v, %v", into.Elem().Interface(), err)
			}
		})
	}
	for _, tt := range []struct {
		name, text string
		into       any
	}{
		{"headers into a list", headers, new([]string)},
		{"headers into numbers", headers, new(map[string]int)},
		{"headers under numbers", headers, new(map[int]string)},
		{"files into url.Values", files, new(url.Values)},
		{"form into strings", form, new(map[string]string)},
		{"Blob into a string", blob, new(string)},
		{"Blob into a File", blob, new(File)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := Unmarshal(Value(tt.text), tt.into); err == nil {
				t.Errorf("taken as %#v", tt.into)
			}
		})
	}
}

func TestEncodeRefusesWebValues(t *testing.T) {
	tooLong := new(big.Int).Lsh(big.NewInt(1), MaxBigIntBits)
	for name, v := range map[string]any{
		"header name":          &Headers{[]Header{{"a b", ""}}},
		"header value":         &Headers{[]Header{{"a", "\n"}}},
		"form of numbers":      &FormData{[]FormEntry{{"a", 1.0}}},
		"form of Blobs":        &FormData{[]FormEntry{{"a", &Blob{}}}},
		"method":               &RequestValue{Method: "TRACE"},
		"no method":            &RequestValue{},
		"header of a request":  &RequestValue{Method: "GET", Headers: []Header{{"", ""}}},
		"status":               &ResponseValue{Status: 99},
		"no status":            &ResponseValue{},
		"header of a response": &ResponseValue{Status: 200, Headers: []Header{{"", ""}}},
		"long BigInt":          tooLong,
		"long BigInt in a box": &Boxed{tooLong},
	} {
		if text, err := Encode(v); err == nil {
			t.Errorf("%s: %.100s", name, text)
		}
		if text, err := Marshal(map[string]any{"a": v}); err == nil {
			t.Errorf("%s: Marshal gives %.100s", name, text)
		}
	}
	if _, err := Marshal(*tooLong); err == nil {
		t.Error("a long BigInt by value is taken")
	}
}

func TestMarshalWebValues(t *testing.T) {
	u, err := url.Parse("https://example.com/a?b=1")
	if err != nil {
		t.Fatal(err)
	}
	f := &File{Name: "n", LastModified: 1}
	got, err := Marshal(map[string]any{"url": u, "blob": Blob{"", []byte("x")}, "form": &FormData{[]FormEntry{{"a", f}, {"b", f}}}})
	want := `{"blob":{"@blob":{"type":"","data":{"@bytes":"eA=="}}},"form":{"@formdata":[["a",{"@file":{"name":"n","type":"","lastModified":1,"data":{"@bytes":""}}}],` +
		`["b",{"@ref":"/form/@formdata/0/1"}]]},"url":{"@url":"https://example.com/a?b=1"}}`
	if err != nil || !bytes.Equal(got, []byte(want)) {
		t.Errorf("got %s, %v", got, err)
	}
	var into struct{ URL *url.URL }
	if err := Unmarshal(got, &into); err != nil || into.URL.Host != "example.com" {
		t.Errorf("%v, %v", into.URL, err)
	}
}
