package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/protocol"
)

// Config is what a Server may be told. A zero field means its default; nothing is ever unlimited.
type Config struct {
	Version     string          // of the service, for session.open
	Limits      protocol.Limits // the Executor's maxima, for session.open
	Policy      Policy
	Certificate *tls.Certificate // with it TCP speaks TLS, and only that; nil means plain
	Logger      *slog.Logger     // default discards

	Meter   metric.MeterProvider // gets what docs/telemetry.md lists; nil costs nothing. It can serve one Server only
	Metrics http.Handler         // answers GET /metrics; nil means that there is nothing
	traffic *channel.Traffic

	// Ready says why /readyz turns callers away, Admit why no new session and no new execution is taken; nil errors where
	// nothing is wrong, and nil funcs mean always. They are asked often, by several goroutines at once.
	Ready func() error
	Admit func() *protocol.Error
	// OnRefused hears of each request that the Policy refuses, from several goroutines at once. It must not block. Nil
	// means nobody.
	OnRefused func(Refusal)

	MaxMessageBytes int64         // one message or request body; default 32 MiB
	QueueBytes      int64         // messages of one session waiting to be read by its client; default 16 MiB
	OwedBytes       int64         // outcomes of one session waiting for room there, beyond which nothing new is begun; default 256 MiB
	TotalOwedBytes  int64         // the same of all sessions; beyond it the session that owes the most ends; default 1 GiB
	PingInterval    time.Duration // a client silent for two of them is gone; default 15 s
	WriteStall      time.Duration // a client that takes nothing for so long is gone; default 30 s
	OpenTimeout     time.Duration // from connecting to session.open; default 10 s
	DrainGrace      time.Duration // for running work once Serve's context ends; default 10 s

	// Messages that a client which can resume has not acknowledged count as owed too; with twice OwedBytes of those that
	// have left its session ends. Sessions whose connection was lost wait for their clients within these bounds. No identity has more than half of
	// the number and the bytes.
	ResumeWindow   time.Duration // for so long; unless set not at all
	ResumeSessions int           // so many; default 64
	ResumeBytes    int64         // messages held for them, counted in steps of 1 MiB; default 256 MiB

	MaxSessionAge time.Duration // after it a session takes no new executions; unless set there is no such age

	// Over the next two limits a connection without a request, or a session that its client has not opened, makes way.
	MaxConnections int // on all listeners together, sessions excluded; default 1024
	MaxSessions    int // default 256

	MaxExecutions int // at once in one session; default 64
	MaxRequests   int // POST /v1/execute at once; default 64

	// The same for all sessions and requests of one identity; by default only the limits above hold.
	MaxCallerSessions   int
	MaxCallerExecutions int
}

// Refusal is a request that the Policy refused.
type Refusal struct {
	Reason Reason
	Peer   string // "uid:1000" or "addr:192.0.2.1", as the kernel tells
	Path   string // of the API, empty for any other
}

// Bounds of the HTTP layer.
const (
	maxHeaderBytes = 16 << 10
	headerTimeout  = 10 * time.Second
	discardTimeout = headerTimeout / 2 // for a body that nobody reads, before the answer is written
	idleTimeout    = 2 * time.Minute
	closeGrace     = 2 * time.Second // after DrainGrace: for outcomes of what was cancelled
)

// check completes the defaults and refuses what makes no sense.
func (c Config) check() (Config, error) {
	defaults := []struct {
		name  string
		value *int64
		def   int64
	}{
		{"MaxMessageBytes", &c.MaxMessageBytes, 32 << 20},
		{"QueueBytes", &c.QueueBytes, 16 << 20},
		{"OwedBytes", &c.OwedBytes, 256 << 20},
		{"TotalOwedBytes", &c.TotalOwedBytes, 1 << 30},
		{"PingInterval", (*int64)(&c.PingInterval), int64(15 * time.Second)},
		{"WriteStall", (*int64)(&c.WriteStall), int64(30 * time.Second)},
		{"OpenTimeout", (*int64)(&c.OpenTimeout), int64(10 * time.Second)},
		{"DrainGrace", (*int64)(&c.DrainGrace), int64(10 * time.Second)},
		{"ResumeWindow", (*int64)(&c.ResumeWindow), 0},
		{"ResumeBytes", &c.ResumeBytes, 256 << 20},
		{"MaxSessionAge", (*int64)(&c.MaxSessionAge), 0},
	}
	for _, d := range defaults {
		if err := orDefault(d.name, d.value, d.def); err != nil {
			return c, err
		}
	}
	counts := []struct {
		name  string
		value *int
		def   int
	}{
		{"MaxConnections", &c.MaxConnections, 1024},
		{"MaxSessions", &c.MaxSessions, 256},
		{"MaxExecutions", &c.MaxExecutions, 64},
		{"MaxRequests", &c.MaxRequests, 64},
		{"MaxCallerSessions", &c.MaxCallerSessions, math.MaxInt},
		{"MaxCallerExecutions", &c.MaxCallerExecutions, math.MaxInt},
		{"ResumeSessions", &c.ResumeSessions, 64},
	}
	for _, d := range counts {
		if err := orDefault(d.name, d.value, d.def); err != nil {
			return c, err
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Admit == nil {
		c.Admit = func() *protocol.Error { return nil }
	}
	if c.OnRefused == nil {
		c.OnRefused = func(Refusal) {}
	}
	if err := c.checkCertificate(); err != nil {
		return c, err
	}
	return c, c.Policy.Check()
}

// checkCertificate also notes the service's own names.
func (c *Config) checkCertificate() (err error) {
	switch {
	case c.Certificate == nil && c.Policy.ClientCAs != nil:
		return errors.New("cannot ask callers for certificates without one of the service itself")
	case c.Certificate == nil:
		return nil
	case len(c.Certificate.Certificate) == 0:
		return errors.New("cannot speak TLS: the certificate is empty")
	}
	if c.Policy.own, err = x509.ParseCertificate(c.Certificate.Certificate[0]); err != nil {
		return fmt.Errorf("cannot speak TLS: %w", err)
	}
	return nil
}

func orDefault[T int | int64](name string, value *T, def T) error {
	if *value < 0 {
		return fmt.Errorf("cannot serve with a negative %s", name)
	}
	if *value == 0 {
		*value = def
	}
	return nil
}

// channel configures the connection to one peer.
func (c Config) channel(p peer) channel.Config {
	return channel.Config{
		MaxMessageBytes: c.MaxMessageBytes,
		QueueBytes:      c.QueueBytes,
		PingInterval:    c.PingInterval,
		Traffic:         c.traffic,
		WriteStall:      c.WriteStall,
		// On one machine compression costs more than it saves. It is safe: what comes out of decompression is bounded by
		// MaxMessageBytes too, see channel.Conn.Receive.
		Compress: !p.unix && !p.addr.IsLoopback(),
	}
}

// bounds of one message; a Value inside it may be as deep as the protocol allows.
func (c Config) bounds() protocol.Bounds {
	const envelope = 16 // levels above a Value
	return protocol.Bounds{
		Bytes: int(c.MaxMessageBytes),
		Depth: protocol.ValueBounds.Depth + envelope,
		Nodes: protocol.ValueBounds.Nodes,
	}
}
