package fetch

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// UserAgent of requests that name none.
const UserAgent = "Executor"

// acceptEncoding is what is asked for and decoded. A program never chooses it (Fetch, 2.2.2: a forbidden header).
const acceptEncoding = "gzip, deflate, br"

// Transport returns a transport for Over that reaches what any program of the caller's would, through its proxy too.
func Transport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // Over decodes
	t.MaxResponseHeaderBytes = protocol.MaxHeaderBytes
	return t
}

// Over performs exchanges by t, which must not decompress and not use the environment's proxy by itself unless that is
// wanted. Bodies are decompressed as they are read, so whoever reads bounds them. A failure is a *protocol.ThrownError of
// name TypeError, as the Fetch Standard has it for every network error, whose message does not tell addresses; an error
// of t that is a *protocol.ThrownError itself is passed on.
func Over(t http.RoundTripper) executor.Fetch {
	return func(ctx context.Context, r executor.FetchCall) (*executor.FetchResponse, error) {
		if err := r.Check(); err != nil {
			return nil, err
		}
		request, err := newRequest(ctx, r)
		if err != nil {
			return nil, failed("the request cannot be sent")
		}
		response, err := t.RoundTrip(request)
		if err != nil {
			return nil, reason(ctx, err)
		}
		f, err := newResponse(ctx, r, response)
		if err != nil {
			_ = response.Body.Close()
		}
		return f, err
	}
}

// newRequest words r for net/http. What describes the connection or the framing of the body is net/http's alone.
func newRequest(ctx context.Context, r executor.FetchCall) (*http.Request, error) {
	var body io.Reader = http.NoBody
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	address, err := protocol.ParseFetchURL(r.URL)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, "", body)
	if err != nil {
		return nil, err
	}
	request.URL, request.Host = address, address.Host
	for _, h := range r.Headers {
		switch name := strings.ToLower(h.Name); {
		case hopByHop[name]:
		case name == "user-agent": // net/http looks for this one under its usual name
			request.Header.Set("User-Agent", rawBytes(h.Value))
		default: // as it was written: servers may tell
			request.Header[h.Name] = append(request.Header[h.Name], rawBytes(h.Value))
		}
	}
	encodings := acceptEncoding
	if protocol.Has(r.Headers, "Range") { // a part of something compressed cannot be decoded
		encodings = "identity"
	}
	request.Header.Set("Accept-Encoding", encodings)
	for _, h := range defaults {
		if !protocol.Has(r.Headers, h.Name) {
			request.Header.Set(h.Name, h.Value)
		}
	}
	return request, nil
}

// defaults are the headers that a request gets where it has none of that name.
var defaults = []protocol.Header{{Name: "Accept", Value: "*/*"}, {Name: "Accept-Language", Value: "*"}, {Name: "User-Agent", Value: UserAgent}}

// hopByHop are headers that the connection has for itself (RFC 9110, 7.6.1), and those that net/http makes.
var hopByHop = map[string]bool{
	"accept-encoding": true, "connection": true, "content-length": true, "expect": true, "host": true, "keep-alive": true,
	"proxy-authorization": true, "proxy-connection": true, "te": true, "trailer": true, "transfer-encoding": true,
	"upgrade": true,
}

// newResponse passes on a response whose head is in bounds.
func newResponse(ctx context.Context, r executor.FetchCall, response *http.Response) (*executor.FetchResponse, error) {
	f := &executor.FetchResponse{FetchHead: protocol.FetchHead{
		Status: response.StatusCode, StatusText: reasonOf(response), Headers: headersOf(response.Header),
	}}
	if err := f.Check(); err != nil {
		return nil, err
	}
	if r.Method == http.MethodHead || nullBody[response.StatusCode] {
		_ = response.Body.Close()
		return f, nil
	}
	f.Body = &body{decoded(response), ctx}
	return f, nil
}

// body words the errors of what it reads.
type body struct {
	io.ReadCloser
	ctx context.Context
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = broken(b.ctx, err)
	}
	return n, err
}

// broken words a failure within a body.
func broken(ctx context.Context, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.As(err, &corrupt), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum),
		errors.Is(err, zlib.ErrHeader), errors.Is(err, zlib.ErrChecksum), strings.HasPrefix(err.Error(), "brotli:"):
		return &protocol.ThrownError{Name: "TypeError", Message: "fetch: the body is not what its Content-Encoding says"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return failed("the body ended too early")
	}
	return reason(ctx, err)
}

// nullBody are the statuses whose responses have no body (Fetch, 2.2.3).
var nullBody = map[int]bool{204: true, 205: true, 304: true}

// reasonOf is the text after the status code, as it came.
func reasonOf(response *http.Response) string {
	_, text, _ := strings.Cut(response.Status, strconv.Itoa(response.StatusCode))
	return byteString(strings.TrimPrefix(text, " "))
}

func headersOf(h http.Header) []protocol.Header {
	list := make([]protocol.Header, 0, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			list = append(list, protocol.Header{Name: strings.ToLower(name), Value: byteString(value)})
		}
	}
	return list
}

// byteString gives each byte of s a character, which Fetch calls isomorphic decoding.
func byteString(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// rawBytes is the opposite.
func rawBytes(s string) string {
	raw := make([]byte, 0, len(s))
	for _, r := range s {
		raw = append(raw, byte(r))
	}
	return string(raw)
}

func failed(why string) error {
	return &protocol.ThrownError{Name: "TypeError", Message: "fetch: " + why, Code: NetworkFailure}
}

// NetworkFailure is the code of an error after which the same exchange may succeed another time.
const NetworkFailure = "NETWORK"

// reason words a failure of the exchange for the program. What the operating system says would tell it addresses and
// names of the host's network.
func reason(ctx context.Context, err error) error {
	var typed *protocol.ThrownError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &typed):
		return typed
	case errors.As(err, &timeout) && timeout.Timeout(), errors.As(context.Cause(ctx), &timeout) && timeout.Timeout():
		return failed("the other side took too long")
	case ctx.Err() != nil:
		return failed("the exchange was given up")
	case strings.Contains(err.Error(), "server response headers exceeded"):
		return &protocol.ThrownError{Name: "TypeError", Message: "fetch: the response's headers are too large"}
	}
	return failed("the exchange failed: no connection, a broken one, or an answer that is no HTTP")
}
