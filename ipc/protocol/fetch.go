package protocol

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of one HTTP exchange. Bodies are bounded by limits of the execution and the size of a message.
const (
	MaxURLBytes    = 16 << 10
	MaxVerbBytes   = 64
	MaxHeaders     = 256
	MaxHeaderBytes = 64 << 10 // names and values together
	MaxReasonBytes = 1024     // text after the status
)

// Header is one header of a request or a response: its name and its value. The characters of the value are bytes,
// U+0000 to U+00FF, as the Fetch Standard's byte strings.
type Header struct{ Name, Value string }

// FetchRequest is one HTTP exchange that a program asks for. Redirects are the program's own: whoever performs the
// exchange follows none.
type FetchRequest struct {
	Method  string
	URL     string // absolute, http or https, without credentials and fragment
	Headers []Header
	Body    []byte // nil for none
}

// FetchHead is a response up to its body.
type FetchHead struct {
	Status     int    // 200 to 599
	StatusText string // its characters are bytes, as in a Header
	URL        string // where the response came from, if not from the URL of the request: whoever answered followed redirects
	Headers    []Header
}

// FetchResponse is a whole response.
type FetchResponse struct {
	FetchHead
	Body []byte // nil for none
}

// FetchParams is the params of fetch, for network "host"; the result is {"response": FetchResponse}.
type FetchParams struct {
	Execution string
	Call      uint64 // unique in the execution
	Request   FetchRequest
}

// AppendFetchRequest appends the JSON text of r.
func AppendFetchRequest(dst []byte, r *FetchRequest) []byte {
	dst = appendString(append(dst, `{"method":`...), r.Method)
	dst = appendString(append(dst, `,"url":`...), r.URL)
	dst = appendHeaders(append(dst, `,"headers":`...), r.Headers)
	return append(appendBody(append(dst, `,"body":`...), r.Body), '}')
}

// AppendFetchHead appends the JSON text of h, with "body" telling whether a body follows. All fields are always there.
func AppendFetchHead(dst []byte, h *FetchHead, body bool) []byte {
	return append(strconv.AppendBool(append(appendHead(dst, h), `,"body":`...), body), '}')
}

func appendHead(dst []byte, h *FetchHead) []byte {
	dst = strconv.AppendInt(append(dst, `{"status":`...), int64(h.Status), 10)
	dst = appendString(append(dst, `,"statusText":`...), h.StatusText)
	dst = appendString(append(dst, `,"url":`...), h.URL)
	return appendHeaders(append(dst, `,"headers":`...), h.Headers)
}

// AppendFetchResult appends the answer to a fetch.
func AppendFetchResult(dst []byte, id json.RawMessage, r *FetchResponse) []byte {
	dst = appendHead(append(appendResultHead(dst, id), `{"response":`...), &r.FetchHead)
	return append(appendBody(append(dst, `,"body":`...), r.Body), `}}}`...)
}

// AppendFetch appends the fetch request f.
func AppendFetch(dst []byte, id json.RawMessage, f *FetchParams) []byte {
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), id...)
	dst = appendString(append(dst, `,"method":"`+MethodFetch+`","params":{"execution":`...), f.Execution)
	dst = strconv.AppendUint(append(dst, `,"call":`...), f.Call, 10)
	return append(AppendFetchRequest(append(dst, `,"request":`...), &f.Request), '}', '}')
}

func appendHeaders(dst []byte, headers []Header) []byte {
	dst = append(dst, '[')
	for i, h := range headers {
		dst = appendStrings(comma(dst, i), []string{h.Name, h.Value})
	}
	return append(dst, ']')
}

// AppendBytes appends the encoding of bytes as a Value.
func AppendBytes(dst, b []byte) []byte {
	dst = base64.StdEncoding.AppendEncode(append(dst, `{"@bytes":"`...), b)
	return append(dst, '"', '}')
}

func appendBody(dst, b []byte) []byte {
	if b == nil {
		return append(dst, "null"...)
	}
	return AppendBytes(dst, b)
}

// DecodeFetchRequest reads a FetchRequest. It is strict: a fault of the text is an *Error that names the field. What the
// fields hold is not looked at; see Check.
func DecodeFetchRequest(text json.RawMessage, b Bounds) (*FetchRequest, error) {
	f, r := &FetchRequest{}, paramReader{b}
	return f, r.fetchRequest("request", text, f)
}

func (r paramReader) fetchRequest(path string, text json.RawMessage, f *FetchRequest) error {
	return r.object(path, text, func(name, path string, v json.RawMessage) error {
		switch name {
		case "method":
			return r.text(path, v, &f.Method)
		case "url":
			return r.text(path, v, &f.URL)
		case "headers":
			return r.headers(path, v, math.MaxInt, &f.Headers) // Check counts them, for the program to hear of it
		case "body":
			return r.body(path, v, &f.Body)
		}
		return unknownField(path)
	})
}

// DecodeFetch reads the params of fetch and holds the request to Check.
func DecodeFetch(params json.RawMessage, b Bounds) (*FetchParams, error) {
	f, r := &FetchParams{}, paramReader{b}
	err := r.object("", params, func(name, path string, v json.RawMessage) error {
		switch name {
		case "execution":
			return r.text(path, v, &f.Execution)
		case "call":
			return r.wrapped(path, v, &f.Call)
		case "request":
			return r.fetchRequest(path, v, &f.Request)
		}
		return nil
	})
	if err == nil {
		if fault := f.Request.Check(); fault != nil {
			err = FieldError("request", "%s", fault)
		}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// DecodeFetchResult reads the result of fetch and holds it to Check. Fields that it does not know are passed over. A body
// may also be a string, which is sent as UTF-8.
func DecodeFetchResult(result json.RawMessage, b Bounds) (*FetchResponse, error) {
	f, r := &FetchResponse{}, paramReader{b}
	found := false
	err := r.object("", result, func(name, path string, v json.RawMessage) error {
		if name != "response" {
			return nil
		}
		found = true
		return r.object(path, v, func(name, path string, v json.RawMessage) error {
			switch name {
			case "status":
				return r.wrapped(path, v, &f.Status)
			case "statusText":
				return r.text(path, v, &f.StatusText)
			case "url":
				return r.text(path, v, &f.URL)
			case "headers":
				return r.headers(path, v, MaxHeaders, &f.Headers)
			case "body":
				return r.body(path, v, &f.Body)
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, FieldError("response", "is missing")
	}
	return f, f.Check()
}

func (r paramReader) headers(path string, raw json.RawMessage, most int, into *[]Header) error {
	*into = nil
	return r.array(path, raw, most, func(path string, v json.RawMessage) error {
		var pair []string
		err := r.array(path, v, 2, func(path string, v json.RawMessage) error {
			pair = append(pair, "")
			return r.text(path, v, &pair[len(pair)-1])
		})
		if err == nil && len(pair) != 2 {
			err = FieldError(path, "must be a name and a value")
		}
		if err == nil {
			*into = append(*into, Header{pair[0], pair[1]})
		}
		return err
	})
}

func (r paramReader) body(path string, raw json.RawMessage, into *[]byte) error {
	switch raw[0] {
	case 'n':
		*into = nil
		return nil
	case '"':
		var text string
		err := r.text(path, raw, &text)
		*into = []byte(text)
		return err
	}
	*into = nil
	err := r.object(path, raw, func(name, path string, v json.RawMessage) error {
		var text string
		if name != "@bytes" {
			return unknownField(path)
		}
		if err := r.text(path, v, &text); err != nil {
			return err
		}
		data, ok := decodeBase64(text)
		if !ok {
			return FieldError(path, "must be base64 with padding")
		}
		*into = data
		return nil
	})
	if err == nil && *into == nil {
		err = FieldError(path, "must have @bytes")
	}
	return err
}

// Check holds a request to what can be asked of anybody: the bounds above, an address of http or https, a method that is
// no tunnel and no trace (Fetch, 2.2.1), and headers that are headers. The error is a *ThrownError for the program.
func (f *FetchRequest) Check() error {
	switch {
	case len(f.Method) > MaxVerbBytes || !isToken(f.Method):
		return refuse("the method is longer than %d bytes, or none", MaxVerbBytes)
	case forbiddenMethods[strings.ToUpper(f.Method)]:
		return refuse("the method %s is not allowed", f.Method)
	}
	if err := checkURL(f.URL); err != nil {
		return err
	}
	return checkHeaders(f.Headers)
}

var forbiddenMethods = map[string]bool{"CONNECT": true, "TRACE": true, "TRACK": true}

// Check holds a response to what a program can be given. The error is a *ThrownError for it.
func (h *FetchHead) Check() error {
	switch {
	case h.Status < 200 || h.Status > 599:
		return refuse("the response has the status %d", h.Status)
	case len(h.StatusText) > MaxReasonBytes || !isHeaderValue(h.StatusText):
		return refuse("the text of the response's status is too long or not text")
	}
	if h.URL != "" {
		if err := checkURL(h.URL); err != nil {
			return err
		}
	}
	return checkHeaders(h.Headers)
}

// Has tells whether there is a header of that name.
func Has(headers []Header, name string) bool {
	for _, h := range headers {
		if strings.EqualFold(h.Name, name) {
			return true
		}
	}
	return false
}

func refuse(format string, args ...any) error {
	return &ThrownError{Name: "TypeError", Message: "fetch: " + Errorf("", format, args...).Message}
}

func checkURL(text string) error {
	if len(text) > MaxURLBytes {
		return refuse("the URL has %d bytes, more than %d", len(text), MaxURLBytes)
	}
	u, err := ParseFetchURL(text)
	switch {
	case err != nil:
		return refuse("the URL cannot be used")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return refuse("the URL must name a host and have the scheme http or https")
	case u.User != nil:
		return refuse("the URL must not have a user name or a password")
	}
	return nil
}

// ParseFetchURL reads the URL of a request. In a path the URL Standard allows a "%" that begins no escape, which net/url
// does not: it is read as "%25", which servers take for the same.
func ParseFetchURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	var escape url.EscapeError
	if !errors.As(err, &escape) {
		return u, err
	}
	_, rest, _ := strings.Cut(text, "://")
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return nil, err
	}
	path := len(text) - len(rest) + slash
	end := len(text)
	if i := strings.IndexAny(text[path:], "?#"); i >= 0 {
		end = path + i
	}
	return url.Parse(text[:path] + escapePercents(text[path:end]) + text[end:])
}

// escapePercents writes each "%" that begins no escape as one.
func escapePercents(path string) string {
	var b strings.Builder
	for i := range len(path) {
		b.WriteByte(path[i])
		if path[i] == '%' && (i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2])) {
			b.WriteString("25")
		}
	}
	return b.String()
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func checkHeaders(headers []Header) error {
	if len(headers) > MaxHeaders {
		return refuse("there are %d headers, more than %d", len(headers), MaxHeaders)
	}
	total := 0
	for _, h := range headers {
		total += len(h.Name) + len(h.Value)
		if !isToken(h.Name) || !isHeaderValue(h.Value) {
			return refuse("a header is not valid")
		}
	}
	if total > MaxHeaderBytes {
		return refuse("the headers have %d bytes, more than %d", total, MaxHeaderBytes)
	}
	return nil
}

// isToken tells that s is a token (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// isHeaderValue tells that each character is a byte, and none ends the header.
func isHeaderValue(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r > 0xFF || r == 0 || r == '\n' || r == '\r' {
			return false
		}
	}
	return true
}
