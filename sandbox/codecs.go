package sandbox

import (
	"bytes"
	"errors"
	"io"
)

// maxCodecs is how many compression streams one execution may have open at a time. Each holds up to some megabytes
// that count towards no other limit.
const maxCodecs = 64

// codecTable holds the compression streams of one execution by their handles. It belongs to the execution's loop and
// is closed with it.
type codecTable struct {
	last float64
	open map[float64]codec
}

// codec is one compression stream. After an error or finish it must be closed and not be used again.
type codec interface {
	// write takes input and returns what has come of it so far; more says that read has the rest.
	write(input []byte) (output []byte, more bool, err error)
	// finish says that there is no more input.
	finish() (output []byte, more bool, err error)
	// read gives the next piece of output.
	read() (output []byte, more bool, err error)
	// close frees what the stream holds and waits for its goroutine, if it has one.
	close()
}

func (t *codecTable) add(c codec) (float64, error) {
	if t == nil || len(t.open) >= maxCodecs {
		c.close()
		return 0, errors.New("RangeError: too many compression streams are open at a time")
	}
	if t.open == nil {
		t.open = map[float64]codec{}
	}
	t.last++
	t.open[t.last] = c
	return t.last, nil
}

func (t *codecTable) remove(handle float64) {
	if c, ok := t.find(handle); ok {
		c.close()
		delete(t.open, handle)
	}
}

func (t *codecTable) find(handle float64) (codec, bool) {
	if t == nil {
		return nil, false
	}
	c, ok := t.open[handle]
	return c, ok
}

// close ends every stream that the program left open.
func (t *codecTable) close() {
	for handle := range t.open {
		t.remove(handle)
	}
}

// pieceBytes is how much decompressed data crosses to the program at a time: a small input may expand a thousandfold,
// and what the program has not asked for must cost nothing.
const pieceBytes = 64 << 10

// compressor is a codec that compresses. Its output is never much larger than its input.
type compressor struct {
	out bytes.Buffer
	w   io.WriteCloser
}

func newCompressor(make func(io.Writer) io.WriteCloser) *compressor {
	c := &compressor{}
	c.w = make(&c.out)
	return c
}

func (c *compressor) write(input []byte) ([]byte, bool, error) {
	_, err := c.w.Write(input)
	return c.take(), false, err
}

func (c *compressor) finish() ([]byte, bool, error) {
	err := c.w.Close()
	return c.take(), false, err
}

func (c *compressor) read() ([]byte, bool, error) { return c.take(), false, nil }

func (c *compressor) close() {}

func (c *compressor) take() []byte {
	b := bytes.Clone(c.out.Bytes())
	c.out.Reset()
	return b
}

// decompressor is a codec that decompresses. The decoders of the standard library pull their input, so each runs in a
// goroutine of its own, which only ever runs while its owner waits for it in step.
type decompressor struct {
	input  chan []byte // nil: no more will come
	events chan event
	quit   chan struct{} // closed by close
	hungry bool          // the goroutine waits for input
	ended  bool          // the goroutine is gone
}

// event is what a decoder comes to: a piece of output, that it wants input, or its end.
type event struct {
	piece []byte
	hungry,
	end bool
	err error
}

// newDecompressor starts a decoder; open reads the header.
func newDecompressor(open func(io.Reader) (io.Reader, error)) *decompressor {
	d := &decompressor{input: make(chan []byte), events: make(chan event), quit: make(chan struct{})}
	go d.run(open)
	_, _, _ = d.read() // it wants input
	return d
}

// run is the decoder's goroutine. Its last event has end set.
func (d *decompressor) run(open func(io.Reader) (io.Reader, error)) {
	feed := &feed{d: d}
	err := feed.wait()
	if err == nil {
		err = d.decode(open, feed)
	}
	if err == nil {
		err = feed.expectEnd()
	}
	select {
	case d.events <- event{end: true, err: err}:
	case <-d.quit:
	}
	close(d.events)
}

func (d *decompressor) decode(open func(io.Reader) (io.Reader, error), feed *feed) error {
	r, err := open(feed)
	if err != nil {
		return unexpected(err)
	}
	piece := make([]byte, pieceBytes)
	for {
		n, err := r.Read(piece)
		if n > 0 && !d.give(event{piece: bytes.Clone(piece[:n])}) {
			return errClosed
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return unexpected(err)
		}
	}
}

// unexpected words an end of the input where none should be.
func unexpected(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("the compressed data ends too early")
	}
	return err
}

var errClosed = errors.New("the stream was closed")

// give hands an event to the owner; false when it has closed the stream.
func (d *decompressor) give(e event) bool {
	select {
	case d.events <- e:
		return true
	case <-d.quit:
		return false
	}
}

func (d *decompressor) write(input []byte) ([]byte, bool, error) {
	if len(input) == 0 {
		return nil, false, nil
	}
	return d.feed(bytes.Clone(input)) // the caller's bytes are only lent
}

func (d *decompressor) finish() ([]byte, bool, error) {
	return d.feed(nil)
}

// feed fails where the output of the input before was not read to its end.
func (d *decompressor) feed(input []byte) ([]byte, bool, error) {
	if !d.hungry {
		return nil, false, errors.New("the stream takes no input now")
	}
	d.input <- input
	d.hungry = false
	return d.read()
}

func (d *decompressor) read() ([]byte, bool, error) {
	if d.hungry || d.ended {
		return nil, false, nil
	}
	e := <-d.events
	d.hungry, d.ended = e.hungry, e.end
	return e.piece, e.piece != nil, e.err
}

func (d *decompressor) close() {
	close(d.quit)
	for range d.events { // until the goroutine has closed it
	}
}

// feed is the input of a decoder. It reads single bytes too, so that no decoder takes more than it needs.
type feed struct {
	d    *decompressor
	rest []byte
	done bool
}

// wait asks for input until there is some; io.EOF when none will come.
func (f *feed) wait() error {
	for len(f.rest) == 0 {
		if f.done {
			return io.EOF
		}
		if !f.d.give(event{hungry: true}) {
			return errClosed
		}
		select {
		case b := <-f.d.input:
			f.rest, f.done = b, b == nil
		case <-f.d.quit:
			return errClosed
		}
	}
	return nil
}

func (f *feed) Read(p []byte) (int, error) {
	if err := f.wait(); err != nil {
		return 0, err
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *feed) ReadByte() (byte, error) {
	if err := f.wait(); err != nil {
		return 0, err
	}
	b := f.rest[0]
	f.rest = f.rest[1:]
	return b, nil
}

// expectEnd fails when anything follows the compressed data.
func (f *feed) expectEnd() error {
	switch err := f.wait(); {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	}
	return errors.New("there is more input after the end of the compressed data")
}
