package channel

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// handshakeTimeout bounds the opening handshake of a server.
const handshakeTimeout = 10 * time.Second

// buffers are shared by all connections: an idle one holds none.
var buffers sync.Pool

// Accept upgrades a request to a WebSocket of the given subprotocol. The caller has checked Origin, Host and that the
// client offers the subprotocol. When it fails, fault has answered the request or the socket is closed.
func Accept(w http.ResponseWriter, r *http.Request, subprotocol string, cfg Config,
	fault func(w http.ResponseWriter, status int, reason error),
) (*Conn, error) {
	cfg = cfg.withDefaults()
	up := websocket.Upgrader{
		HandshakeTimeout:  handshakeTimeout,
		ReadBufferSize:    4 << 10,
		WriteBufferSize:   4 << 10,
		WriteBufferPool:   &buffers,
		Subprotocols:      []string{subprotocol},
		EnableCompression: cfg.Compress,
		CheckOrigin:       func(*http.Request) bool { return true },
		Error: func(w http.ResponseWriter, _ *http.Request, status int, reason error) {
			fault(w, status, reason)
		},
	}
	h := &hijacker{ResponseWriter: w, stall: cfg.WriteStall}
	ws, err := up.Upgrade(h, r, nil)
	if err != nil {
		return nil, err
	}
	return start(ws, h.stream, cfg), nil
}

// hijacker slips a stream between the HTTP server's connection and the WebSocket.
type hijacker struct {
	http.ResponseWriter
	stall  time.Duration
	stream *stream
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	raw, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.stream = newStream(raw, h.stall)
	limitUnsent(raw)
	return h.stream, rw, nil
}

// Dial opens a WebSocket of the given subprotocol to url over the connection that dial makes. With an error the
// response is that of the server when there was one; its body is bounded and readable. Only ctx bounds the handshake: a server
// that its service manager starts, or starts again, may take its time to answer.
func Dial(ctx context.Context, url, subprotocol string, header http.Header, cfg Config,
	dial func(context.Context) (net.Conn, error),
) (*Conn, *http.Response, error) {
	cfg = cfg.withDefaults()
	var s *stream
	d := websocket.Dialer{
		ReadBufferSize:  4 << 10,
		WriteBufferSize: fragmentBytes,
		WriteBufferPool: &buffersClient,
		Subprotocols:    []string{subprotocol},
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			raw, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			s = newStream(raw, cfg.WriteStall)
			limitUnsent(raw)
			return s, nil
		},
		EnableCompression: cfg.Compress,
	}
	ws, resp, err := d.DialContext(ctx, url, header)
	if err != nil {
		return nil, resp, err
	}
	return start(ws, s, cfg), resp, nil
}

// buffersClient holds the larger buffers of the masking end: what fits there is one frame.
var buffersClient sync.Pool
