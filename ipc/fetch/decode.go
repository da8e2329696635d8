package fetch

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
)

// maxCodings bounds the content codings on top of each other.
const maxCodings = 3

// decoders by content coding (RFC 9110, 8.4.1).
var decoders = map[string]func(io.Reader) (io.Reader, error){
	"gzip":    newGzip,
	"x-gzip":  newGzip,
	"deflate": newDeflate,
	"br":      func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
}

func newGzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }

// newDeflate reads the zlib format, or bare deflate, which servers send as well.
func newDeflate(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// decoded is the body without its content codings. A coding that is not known leaves it as it is (Fetch, 2.2.4 "handle
// content codings").
func decoded(response *http.Response) io.ReadCloser {
	var list []string
	for _, value := range response.Header.Values("Content-Encoding") {
		for coding := range strings.SplitSeq(value, ",") {
			if coding = strings.ToLower(strings.TrimSpace(coding)); coding != "" && coding != "identity" {
				list = append(list, coding)
			}
		}
	}
	body := response.Body
	if len(list) > maxCodings {
		return body
	}
	for _, coding := range list {
		if decoders[coding] == nil {
			return body
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		body = &decoder{source: body, open: decoders[list[i]]}
	}
	return body
}

// decoder opens its coding at the first read, so that the head of a response never waits for its body.
type decoder struct {
	source io.ReadCloser
	open   func(io.Reader) (io.Reader, error)
	r      io.Reader
	err    error
	began  bool
}

// Read passes on what can be decoded. An empty body of whatever coding is empty.
func (d *decoder) Read(p []byte) (int, error) {
	if d.r == nil && d.err == nil {
		d.r, d.err = d.open(&watched{d})
		if d.err == io.ErrUnexpectedEOF || d.err == io.EOF {
			d.err = io.EOF
			if d.began {
				d.err = io.ErrUnexpectedEOF
			}
		}
	}
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.r.Read(p)
	if !d.began && (err == io.EOF || err == io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// Close closes what is decoded. It may be called while Read runs.
func (d *decoder) Close() error { return d.source.Close() }

// watched notes that the source had anything at all.
type watched struct{ d *decoder }

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.d.source.Read(p)
	w.d.began = w.d.began || n > 0
	return n, err
}
