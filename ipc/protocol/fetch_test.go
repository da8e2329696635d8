package protocol

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestFetchRoundTrip(t *testing.T) {
	requests := []FetchRequest{
		{Method: "GET", URL: "https://example.com/a?b"},
		{Method: "POST", URL: "http://[::1]:8080/", Headers: []Header{{"A", "1"}, {"a", "\u00e9 \""}}, Body: []byte{}},
		{Method: "PATCH", URL: "http://x/", Body: []byte{0, 255, '"'}},
	}
	for _, want := range requests {
		text := AppendFetch(nil, NumberID(3), &FetchParams{Execution: "e", Call: 7, Request: want})
		m, err := ParseMessage(text, ValueBounds)
		if err != nil || m.Method != MethodFetch {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := DecodeFetch(m.Params, ValueBounds)
		if err != nil || got.Execution != "e" || got.Call != 7 || !sameRequest(got.Request, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	responses := []FetchResponse{
		{FetchHead: FetchHead{Status: 204}},
		{FetchHead: FetchHead{Status: 200, StatusText: "Très bien", URL: "http://y/", Headers: []Header{{"set-cookie", "a"}}}, Body: []byte("é\x00")},
	}
	for _, want := range responses {
		m, err := ParseMessage(AppendFetchResult(nil, NumberID(3), &want), ValueBounds)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeFetchResult(m.Result, ValueBounds)
		if err != nil || !reflect.DeepEqual(got.FetchHead, want.FetchHead) || string(got.Body) != string(want.Body) || (got.Body == nil) != (want.Body == nil) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func sameRequest(a, b FetchRequest) bool {
	return a.Method == b.Method && a.URL == b.URL && reflect.DeepEqual(a.Headers, b.Headers) &&
		string(a.Body) == string(b.Body) && (a.Body == nil) == (b.Body == nil)
}

func TestDecodeFetchRefuses(t *testing.T) {
	cases := []struct{ name, request, field string }{
		{"no object", `5`, "request"},
		{"unknown field", `{"method":"GET","redirect":"follow"}`, "request.redirect"},
		{"method of another kind", `{"method":1}`, "request.method"},
		{"lone surrogate", `{"url":"\ud800"}`, "request.url"},
		{"header of three", `{"headers":[["a","b","c"]]}`, "request.headers[0]"},
		{"header of one", `{"headers":[["a"]]}`, "request.headers[0]"},
		{"header that is an object", `{"headers":[{"a":"b"}]}`, "request.headers[0]"},
		{"body that is a number", `{"body":4}`, "request.body"},
		{"body of no bytes", `{"body":{}}`, "request.body"},
		{"body of another tag", `{"body":{"@date":0}}`, "request.body.@date"},
		{"body that is not base64", `{"body":{"@bytes":"a"}}`, "request.body.@bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeFetchRequest(json.RawMessage(c.request), ValueBounds)
			var fault *Error
			if !errors.As(err, &fault) || fault.Type != InvalidParams || fault.Field != c.field {
				t.Errorf("got %v", err)
			}
		})
	}
	// A program may ask for too much; that is no fault of the text.
	many, err := DecodeFetchRequest(json.RawMessage(`{"method":"GET","url":"http://a/","headers":[`+strings.Repeat(`["a","b"],`, MaxHeaders)+`["a","b"]]}`), ValueBounds)
	var thrown *ThrownError
	if err != nil || !errors.As(many.Check(), &thrown) {
		t.Errorf("too many headers: %v", err)
	}
	if _, err := DecodeFetchResult(json.RawMessage(`{"answer":1}`), ValueBounds); err == nil {
		t.Error("a result without a response")
	}
}

func TestCheckFetch(t *testing.T) {
	good := FetchRequest{Method: "GET", URL: "http://x/"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	header := func(name, value string) FetchRequest {
		return FetchRequest{Method: "GET", URL: "http://x/", Headers: []Header{{name, value}}}
	}
	for name, r := range map[string]FetchRequest{
		"no method":             {URL: "http://x/"},
		"method with a space":   {Method: "G T", URL: "http://x/"},
		"long method":           {Method: strings.Repeat("A", MaxVerbBytes+1), URL: "http://x/"},
		"tunnel":                {Method: "connect", URL: "http://x/"},
		"no URL":                {Method: "GET"},
		"file":                  {Method: "GET", URL: "file:///etc/passwd"},
		"no host":               {Method: "GET", URL: "http:///x"},
		"relative":              {Method: "GET", URL: "/x"},
		"credentials":           {Method: "GET", URL: "http://u:p@x/"},
		"user":                  {Method: "GET", URL: "http://u@x/"},
		"long URL":              {Method: "GET", URL: "http://x/" + strings.Repeat("a", MaxURLBytes)},
		"control in the URL":    {Method: "GET", URL: "http://x/\r\nHost: y"},
		"header with a colon":   header("a:b", "1"),
		"header without a name": header("", "1"),
		"header of two lines":   header("a", "1\r\nb: 2"),
		"header with a return":  header("a", "1\rb"),
		"header with a zero":    header("a", "\x00"),
		"header beyond bytes":   header("a", "☃"),
		"header not UTF-8":      header("a", "\xff"),
		"large header":          header("a", strings.Repeat("x", MaxHeaderBytes)),
	} {
		var thrown *ThrownError
		if err := r.Check(); !errors.As(err, &thrown) || thrown.Name != "TypeError" || len(thrown.Message) > 200 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, h := range map[string]FetchHead{
		"no status":     {},
		"informational": {Status: 101},
		"status 600":    {Status: 600},
		"long text":     {Status: 200, StatusText: strings.Repeat("x", MaxReasonBytes+1)},
		"text of lines": {Status: 200, StatusText: "a\nb"},
		"odd URL":       {Status: 200, URL: "file:///x"},
		"odd header":    {Status: 200, Headers: []Header{{"a b", "c"}}},
	} {
		if h.Check() == nil {
			t.Errorf("%s: passes", name)
		}
	}
}

func FuzzDecodeFetchResult(f *testing.F) {
	f.Add([]byte(`{"response":{"status":200,"statusText":"OK","url":"http://x/","headers":[["a","b"]],"body":"x"}}`))
	f.Add([]byte(`{"response":{"status":2e2,"body":{"@bytes":"AA=="}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := DecodeFetchResult(text, Bounds{Bytes: 1 << 16, Depth: 50, Nodes: 1000})
		if err != nil {
			return
		}
		again, err := ParseMessage(AppendFetchResult(nil, NumberID(1), r), ValueBounds)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeFetchResult(again.Result, ValueBounds); err != nil {
			t.Errorf("%q does not survive: %v", text, err)
		}
	})
}

func TestParseFetchURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://a/b%20c?d=%":   "http://a/b%20c?d=%",
		"http://a/100%/y":      "http://a/100%25/y",
		"http://a/%zz%4/%41?%": "http://a/%25zz%254/%41?%",
		"http://a/%":           "http://a/%25",
		"http://a%/b":          "",
		"http://[::1%]/%":      "",
		"http://a?%/%":         "http://a?%/%",
	} {
		got := ""
		if u, err := ParseFetchURL(text); err == nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
