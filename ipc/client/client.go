package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// Client is a remote executor.
type Client struct {
	opts     options
	endpoint endpoint

	ctx    context.Context // ends when Close begins
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	conn   *session // in use for new executions
	closed bool
	work   sync.WaitGroup // calls of Execute
}

var _ executor.Executor = (*Client)(nil)

// openTimeout bounds connecting and session.open together, where the caller's context does not.
const openTimeout = 30 * time.Second

// maxMaxMessage is the largest setting of WithMaxMessageBytes.
const maxMaxMessage = 1 << 30

// Dial connects to the service at address: unix:/path, tcp://host:port or ws://host:port, and over TLS tls://host:port or
// wss://host:port. A refusal of the service is a *protocol.Error; where nobody listens the error wraps that of the socket.
func Dial(ctx context.Context, address string, opts ...Option) (*Client, error) {
	o := defaults()
	for _, set := range opts {
		set(&o)
	}
	if o.maxTools < 1 || o.maxMessage < 1 || o.maxMessage > maxMaxMessage || o.cancelGrace <= 0 {
		return nil, errors.New("cannot dial with a limit that is not positive or too large")
	}
	o.channel.MaxMessageBytes = 2 * o.maxMessage
	e, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	c := &Client{opts: o, endpoint: e}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	if c.conn, err = c.open(ctx); err != nil {
		c.cancel(err)
		return nil, err
	}
	return c, nil
}

// open makes one connection and opens a session on it.
func (c *Client) open(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	header := http.Header{}
	if c.opts.token != "" {
		header.Set("Authorization", "Bearer "+c.opts.token)
	}
	dial := func(ctx context.Context) (net.Conn, error) { return c.endpoint.dial(ctx, c.opts.tls) }
	conn, resp, err := channel.Dial(ctx, c.endpoint.url, protocol.Subprotocol, header, c.opts.channel, dial)
	if err != nil {
		if refusal := refusalOf(resp); refusal != nil {
			return nil, refusal
		}
		return nil, fmt.Errorf("cannot connect to %s: %w", c.endpoint.address, err)
	}
	s := newSession(conn, &c.opts)
	if err := s.open(ctx); err != nil {
		s.close(channel.CloseNormal, "")
		return nil, err
	}
	return s, nil
}

// refusalOf is the typed error in the service's answer to the handshake, nil when there is none.
func refusalOf(resp *http.Response) *protocol.Error {
	if resp == nil {
		return nil
	}
	var body struct {
		Error *protocol.Error `json:"error"`
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
	if json.Unmarshal(text, &body) != nil || body.Error == nil {
		return protocol.Errorf(protocol.Internal, "the service answered the handshake with HTTP status %d", resp.StatusCode)
	}
	if _, known := body.Error.Type.Info(); !known {
		body.Error.Type = protocol.Internal
	}
	return body.Error
}

// Server is what the service told of itself when the session was opened.
func (c *Client) Server() protocol.SessionOpened {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn.opened
}

// begin counts a call of Execute and gives it the connection to use.
func (c *Client) begin() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, protocol.Errorf(protocol.Draining, "the client is closed")
	}
	c.work.Add(1)
	return c.conn, nil
}

// Close cancels what still runs and waits for it, for the tools that it called too, and ends the session.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(protocol.Errorf(protocol.Cancelled, "the client was closed"))
	c.work.Wait()
	c.conn.close(channel.CloseNormal, "")
	return nil
}
