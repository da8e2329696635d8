package sandbox

import (
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"

	"github.com/andybalholm/brotli"
)

// The operations behind CompressionStream and DecompressionStream (https://compression.spec.whatwg.org/):
//
//	compression.open(format, decompress) → handle
//	compression.write(handle, bytes) → bytes or nil
//	compression.finish(handle) → bytes or nil
//	compression.read(handle) → bytes or nil
//	compression.close(handle)
//
// write and finish give the first piece of output and read the next ones, until it gives nil. A stream is closed by
// itself when an operation fails.

// compressors by format.
var compressors = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"deflate-raw": func(w io.Writer) io.WriteCloser {
		f, _ := flate.NewWriter(w, flate.DefaultCompression) // it fails only for another level
		return f
	},
	"brotli": func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 5) },
}

// decompressors by format.
var decompressors = map[string]func(io.Reader) (io.Reader, error){
	"gzip": func(r io.Reader) (io.Reader, error) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		z.Multistream(false) // a second member is input after the end
		return z, nil
	},
	"deflate":     func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
	"deflate-raw": func(r io.Reader) (io.Reader, error) { return flate.NewReader(r), nil },
	"brotli":      func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
}

var errCompressionArguments = errors.New("TypeError: wrong arguments of a compression operation")

func (s services) openCodec(args []any) (any, error) {
	if len(args) != 2 {
		return nil, errCompressionArguments
	}
	format, _ := args[0].(string)
	decompress, _ := args[1].(float64)
	if decompress != 0 {
		open, ok := decompressors[format]
		if !ok {
			return nil, errCompressionArguments
		}
		return s.codecs.add(newDecompressor(open))
	}
	open, ok := compressors[format]
	if !ok {
		return nil, errCompressionArguments
	}
	return s.codecs.add(newCompressor(open))
}

// useCodec finds the stream of a handle, does something to it and closes it if that fails.
func (s services) useCodec(args []any, use func(c codec) ([]byte, bool, error)) (any, error) {
	handle, _ := firstNumber(args)
	c, ok := s.codecs.find(handle)
	if !ok {
		return nil, errors.New("TypeError: the compression stream is closed")
	}
	output, more, err := use(c)
	if err != nil {
		s.codecs.remove(handle)
		return nil, errors.New("TypeError: " + err.Error())
	}
	if len(output) == 0 && !more {
		return nil, nil
	}
	return output, nil
}

func firstNumber(args []any) (float64, bool) {
	if len(args) == 0 {
		return 0, false
	}
	n, ok := args[0].(float64)
	return n, ok
}

func (s services) writeCodec(args []any) (any, error) {
	if len(args) != 2 {
		return nil, errCompressionArguments
	}
	input, _ := args[1].([]byte)
	return s.useCodec(args, func(c codec) ([]byte, bool, error) { return c.write(input) })
}

func (s services) finishCodec(args []any) (any, error) {
	return s.useCodec(args, codec.finish)
}

func (s services) readCodec(args []any) (any, error) {
	return s.useCodec(args, codec.read)
}

func (s services) closeCodec(args []any) (any, error) {
	if handle, ok := firstNumber(args); ok {
		s.codecs.remove(handle)
	}
	return nil, nil
}
