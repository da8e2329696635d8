package client

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/protocol"
)

// Option changes how a Client works.
type Option func(*options)

type options struct {
	party       protocol.Party
	token       string
	tls         *tls.Config
	log         *slog.Logger
	channel     channel.Config
	maxMessage  int64 // sent; the service's messages may be twice as large, see WithMaxMessageBytes
	maxTools    int
	cancelGrace time.Duration
	reconnect   time.Duration
	maxAge      time.Duration // 0 for none
}

// bounds of a message of the service.
func (o *options) bounds() protocol.Bounds {
	return protocol.Bounds{
		Bytes: int(o.channel.MaxMessageBytes),
		Depth: protocol.MaxDepth,
		Nodes: protocol.ValueBounds.Nodes,
	}
}

func defaults() options {
	return options{
		party:       protocol.Party{Name: "executord-go", Version: protocol.Version},
		log:         slog.New(slog.DiscardHandler),
		maxMessage:  32 << 20,
		maxTools:    256,
		cancelGrace: 10 * time.Second,
		reconnect:   10 * time.Second,
	}
}

// WithName says who is calling; the service shows it to its operator.
func WithName(name, version string) Option {
	return func(o *options) { o.party = protocol.Party{Name: name, Version: version} }
}

// WithToken sends a bearer token, as services on TCP may ask for.
func WithToken(secret string) Option { return func(o *options) { o.token = secret } }

// WithTLS says which services are trusted over TLS, and which certificate this client shows. Without it those that the
// system trusts are, and none is shown.
func WithTLS(c *tls.Config) Option { return func(o *options) { o.tls = c } }

// WithLogger hears of panics in tools and of faults of the service. The default discards.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithMaxMessageBytes bounds one message to the service; 32 MiB unless set. It should not pass the service's own limit,
// which closes the connection of whoever sends more. Messages of the service may have twice as much, since an outcome
// has a value and logs.
func WithMaxMessageBytes(n int64) Option { return func(o *options) { o.maxMessage = n } }

// WithMaxTools bounds the tool calls that run at once; 256 unless set. Further ones wait for their turn.
func WithMaxTools(n int) Option { return func(o *options) { o.maxTools = n } }

// WithPingInterval sets how often the connection is probed; a service silent for two intervals counts as lost. 15 s
// unless set.
func WithPingInterval(d time.Duration) Option { return func(o *options) { o.channel.PingInterval = d } }

// WithCancelGrace bounds how long a cancelled Execute waits for the outcome before it makes up one without logs and
// stats; 10 s unless set.
func WithCancelGrace(d time.Duration) Option { return func(o *options) { o.cancelGrace = d } }

// WithReconnect bounds how long Execute waits for a service that cannot be reached any more, or that is stopping, while
// the client tries to connect again; 10 s unless set, and with 0 it tries once. Dial always tries once where nobody
// answers, and goes on for as long where the service is stopping.
func WithReconnect(d time.Duration) Option { return func(o *options) { o.reconnect = d } }

// WithMaxSessionAge has the client open another session at that age, for executions that begin then; those that run are
// finished where they are, and those that are retained called there. Without it only the service says when.
func WithMaxSessionAge(d time.Duration) Option { return func(o *options) { o.maxAge = d } }
