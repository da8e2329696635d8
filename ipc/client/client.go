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

// Client is a remote executor. It has one connection in use at a time, and makes it again when it is lost.
//
// What is under way then goes on, where the service keeps lost sessions (see its --resume-window): calls, logs and
// outcomes that were lost come again, once, and no tool is run twice. Where it does not, or not for long enough, Execute
// fails with protocol.Internal: the program may or may not have run, and is not sent again.
type Client struct {
	opts     options
	endpoint endpoint

	ctx      context.Context // ends when Close begins
	cancel   context.CancelCauseFunc
	sessions sync.WaitGroup // goroutines of sessions, and of connecting

	mu         sync.Mutex
	current    *session // for new executions; nil while there is none
	connecting *attempt // nil while nobody connects
	opened     protocol.SessionOpened
	closed     bool
	work       sync.WaitGroup // calls of Execute and Invoke

	memory memory // of what is retained
}

var _ executor.Retainer = (*Client)(nil)

// openTimeout bounds connecting and session.open together, where the caller's context does not.
const openTimeout = 30 * time.Second

// maxMaxMessage is the largest setting of WithMaxMessageBytes.
const maxMaxMessage = 1 << 30

// Dial connects to the service at address: unix:/path, tcp://host:port or ws://host:port, and over TLS tls://host:port or
// wss://host:port. A refusal of the service is a *protocol.Error; where nobody listens or answers the error wraps that of
// the socket or of the deadline. A service that is just stopping is asked again for as long as WithReconnect says, since
// another may take its place.
func Dial(ctx context.Context, address string, opts ...Option) (*Client, error) {
	o := defaults()
	for _, set := range opts {
		set(&o)
	}
	if o.maxTools < 1 || o.maxMessage < 1 || o.maxMessage > maxMaxMessage || o.cancelGrace <= 0 || o.reconnect < 0 || o.maxAge < 0 {
		return nil, errors.New("cannot dial with a limit that is not positive or too large")
	}
	o.channel.MaxMessageBytes = 2 * o.maxMessage
	e, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	c := &Client{opts: o, endpoint: e}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	if err = c.begin(ctx); errors.Is(err, protocol.Draining) {
		err = c.beginAfter(ctx, err)
	}
	if err != nil {
		c.cancel(err)
		return nil, err
	}
	return c, nil
}

// begin opens a session for new executions.
func (c *Client) begin(ctx context.Context) error {
	none := uint64(0)
	conn, opened, err := c.connect(ctx, protocol.SessionOpen{Client: c.opts.party, Received: &none})
	if err != nil {
		return err
	}
	s := newSession(c, conn, opened)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.opened = s, opened
	s.retired = c.closed
	c.sessions.Go(func() { s.run(conn) })
	return nil
}

// connect makes one connection and opens a session on it, a new one or one that is resumed.
func (c *Client) connect(ctx context.Context, open protocol.SessionOpen) (*channel.Conn, protocol.SessionOpened, error) {
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
			return nil, protocol.SessionOpened{}, refusal
		}
		return nil, protocol.SessionOpened{}, fmt.Errorf("cannot connect to %s: %w", c.endpoint.address, err)
	}
	opened, err := c.openOn(ctx, conn, open)
	if err != nil {
		conn.Close(channel.CloseNormal, "")
		c.sessions.Go(func() { discard(conn) })
		return nil, opened, err
	}
	return conn, opened, nil
}

// discard waits for the end of a connection that is closing.
func discard(conn *channel.Conn) {
	for {
		if _, err := conn.Receive(); err != nil {
			<-conn.Done()
			return
		}
	}
}

// openOn sends session.open, the first message of a connection, and takes the answer, which is the first one too.
func (c *Client) openOn(ctx context.Context, conn *channel.Conn, open protocol.SessionOpen) (opened protocol.SessionOpened, err error) {
	params, err := protocol.EncodeParams(open)
	if err != nil {
		return opened, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Abort("session.open was not answered: " + context.Cause(ctx).Error()) })
	defer stop()
	if err := conn.Send(ctx, protocol.AppendRequest(nil, protocol.NumberID(0), protocol.MethodSessionOpen, params)); err != nil {
		return opened, turnedAway(conn)
	}
	text, err := conn.Receive()
	switch {
	case ctx.Err() != nil:
		return opened, fmt.Errorf("cannot connect to %s: session.open was not answered: %w", c.endpoint.address, context.Cause(ctx))
	case err != nil:
		return opened, turnedAway(conn)
	}
	m, err := protocol.ParseMessage(text, c.opts.bounds())
	switch {
	case err != nil:
	case m.Error != nil:
		return opened, m.Error.Typed()
	case m.Kind == protocol.KindResponse:
		err = json.Unmarshal(m.Result, &opened)
	default:
		err = errors.New("another message came first")
	}
	switch {
	case err != nil:
		return opened, protocol.Errorf(protocol.Internal, "the service opened the session in a way that cannot be read: %s", err)
	case opened.Protocol != protocol.Version:
		return opened, protocol.Errorf(protocol.UnsupportedProtocol,
			"the service speaks version %.20q of the protocol, this client version %q", opened.Protocol, protocol.Version)
	}
	return opened, nil
}

// turnedAway is the error of a connection that ended before the session was open, so that nothing can have run.
func turnedAway(conn *channel.Conn) error {
	var end *channel.CloseError
	if errors.As(conn.Cause(), &end) && end.Code == channel.CloseGoingAway {
		return protocol.Errorf(protocol.Draining, "the service is stopping")
	}
	return lost(conn)
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

// Server is what the service told of itself when it opened the session that was begun last.
func (c *Client) Server() protocol.SessionOpened {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}

// enter counts a call of Execute or Invoke until leave is called. Its context ends with ctx, and when Close begins.
func (c *Client) enter(ctx context.Context) (within context.Context, leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, protocol.Errorf(protocol.Draining, "the client is closed")
	}
	c.work.Add(1)
	within, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })
	return within, func() {
		stop()
		cancel(nil)
		c.work.Done()
	}, nil
}

// Close cancels what still runs and waits for it, for the tools that it called too, and ends the sessions.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(protocol.Errorf(protocol.Cancelled, "the client was closed"))
	c.work.Wait()
	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	if s != nil {
		s.retire()
	}
	for _, k := range c.memory.live() { // sessions that went on for what they retain
		k.session.abandon("the client was closed")
	}
	c.sessions.Wait()
	return nil
}
