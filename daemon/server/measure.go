package server

import (
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/executord/executord/daemon/telemetry/instrument"
	"github.com/executord/executord/ipc/protocol"
)

// scope names the package in metrics.
const scope = "github.com/executord/executord/daemon/server"

// The values of labels.
var (
	reasons    = instrument.LabelsOf(instrument.Reason, Reasons()...)
	refusals   = instrument.LabelsOf(instrument.ErrorType, notRun()...)
	directions = instrument.LabelsOf(instrument.Direction, "receive", "transmit")
)

// notRun are the types of what could not be run.
func notRun() (types []protocol.Type) {
	for _, i := range protocol.Types() {
		if !i.Ran {
			types = append(types, i.Type)
		}
	}
	return types
}

// tally counts errors that were answered, by type.
type tally map[protocol.Type]*atomic.Int64

func newTally() tally {
	t := tally{}
	for _, typ := range notRun() {
		t[typ] = &atomic.Int64{}
	}
	return t
}

// add counts e; one that the Executor made up counts as what callers take it for.
func (t tally) add(e *protocol.Error) {
	n := t[e.Type]
	if n == nil {
		n = t[protocol.Internal]
	}
	n.Add(1)
}

// measure tells a metric.MeterProvider what the server counts, whenever somebody asks. docs/telemetry.md lists it.
func (s *Server) measure(provider metric.MeterProvider) error {
	set := instrument.New(provider, scope)
	sessions := set.Level("executord.session.active", "{session}", "Sessions that are open")
	away := set.Level("executord.session.away", "{session}", "Sessions whose connection was lost and that wait for their clients")
	began := set.Counter("executord.sessions", "{session}", "Sessions that began")
	connections := set.Level("executord.connection.active", "{connection}", "Connections that are open and no sessions")
	messages := set.Counter("executord.messages", "{message}", "Messages of sessions, and bodies of single requests and their answers")
	bytes := set.Counter("executord.message.io", "By", "Text of messages, uncompressed")
	owed := set.Level("executord.session.owed", "By", "Outcomes that wait for their clients to read, and messages kept for clients that can resume")
	late := set.Counter("executord.session.late_responses", "{message}", "Responses of hosts to calls that nobody waited for any more")
	refused := set.Counter("executord.refusals", "{request}", "Requests of callers that were answered with an error and not run")
	failures := set.Counter("executord.auth.failures", "{request}", "Requests that were refused for who sent them")
	return set.Read(func(o metric.Observer) {
		now := s.Stats()
		o.ObserveInt64(sessions, int64(now.Sessions))
		o.ObserveInt64(away, int64(now.Away))
		o.ObserveInt64(began, int64(now.Began))
		o.ObserveInt64(connections, now.Connections)
		instrument.Observe(o, messages, directions, map[string]int64{"receive": s.traffic.Received.Messages.Load(), "transmit": s.traffic.Sent.Messages.Load()})
		instrument.Observe(o, bytes, directions, map[string]int64{"receive": s.traffic.Received.Bytes.Load(), "transmit": s.traffic.Sent.Bytes.Load()})
		o.ObserveInt64(owed, now.OwedBytes)
		o.ObserveInt64(late, now.Ignored)
		instrument.Observe(o, refused, refusals, now.NotRun)
		instrument.Observe(o, failures, reasons, now.Refused)
	})
}

// page is GET /metrics, for a scraper that may be slow.
func (s *Server) page(w http.ResponseWriter, r *http.Request, _ caller) {
	if s.cfg.Metrics == nil {
		nothingAt(w, r)
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(s.config().WriteStall))
	s.cfg.Metrics.ServeHTTP(w, r)
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{}) // the connection may serve another request
}
