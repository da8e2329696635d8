// Package instrument makes OpenTelemetry instruments: it gathers the errors, and has what is counted elsewhere read when
// somebody collects, so that counting costs the measured code nothing more.
//
// The parts of the service that measure call it. It knows the API of OpenTelemetry only: who reads, and how, is composed in
// daemon/telemetry. It must never be given a name or a label that a client or a program chose.
//
// A Set belongs to one goroutine until Read; what it made may be used by several at once.
package instrument

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Labels of metrics and attributes of spans. Values of labels come from closed sets.
const (
	Outcome   = attribute.Key("executord.outcome")      // ok, or a protocol.Type of an execution that ran
	Layer     = attribute.Key("executord.layer")        // who ended an execution
	Limit     = attribute.Key("executord.limit")        // a name of protocol.LimitNames
	Reason    = attribute.Key("executord.reason")       // of a worker's end, or of that of what is retained
	State     = attribute.Key("executord.state")        // of a worker
	Status    = attribute.Key("executord.status")       // a protocol.CallStatus
	ErrorType = attribute.Key("error.type")             // a protocol.Type
	Direction = attribute.Key("network.io.direction")   // receive or transmit
	Execution = attribute.Key("executord.execution.id") // of spans only, like all below
	Identity  = attribute.Key("executord.identity")
	Worker    = attribute.Key("executord.worker")
	Provider  = attribute.Key("executord.provider")
	Tool      = attribute.Key("executord.tool")
	Network   = attribute.Key("executord.network")
	Retained  = attribute.Key("executord.retained.id") // of the execution that an invocation is of
)

// OK is the outcome of an execution that gave a value.
const OK = "ok"

// bounds are the buckets of all durations, in seconds: programs take from a millisecond to the longest totalMs.
var bounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900}

// Set is the instruments of one part.
type Set struct {
	meter    metric.Meter
	observed []metric.Observable
	faults   []error
}

// New begins a set; scope is the import path of the part. A nil provider makes instruments that do nothing.
func New(provider metric.MeterProvider, scope string) *Set {
	if provider == nil {
		provider = noop.NewMeterProvider()
	}
	return &Set{meter: provider.Meter(scope)}
}

// Duration is a histogram of seconds.
func (s *Set) Duration(name, what string) metric.Float64Histogram {
	h, err := s.meter.Float64Histogram(name, metric.WithDescription(what), metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(bounds...))
	s.faults = append(s.faults, err)
	return h
}

// Counter is a total that only grows. Unit follows UCUM, as "By" or "{execution}".
func (s *Set) Counter(name, unit, what string) metric.Int64Observable {
	c, err := s.meter.Int64ObservableCounter(name, metric.WithDescription(what), metric.WithUnit(unit))
	return s.add(c, err)
}

// Level is a sum that goes up and down.
func (s *Set) Level(name, unit, what string) metric.Int64Observable {
	c, err := s.meter.Int64ObservableUpDownCounter(name, metric.WithDescription(what), metric.WithUnit(unit))
	return s.add(c, err)
}

func (s *Set) add(o metric.Int64Observable, err error) metric.Int64Observable {
	s.observed = append(s.observed, o)
	s.faults = append(s.faults, err)
	return o
}

// Read has read called whenever somebody collects, which reports all that Counter and Level made. It returns all errors
// of the set.
func (s *Set) Read(read func(metric.Observer)) error {
	_, err := s.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		read(o)
		return nil
	}, s.observed...)
	return errors.Join(append(s.faults, err)...)
}

// Labels are options of measurements, one for each value of a closed set, made once.
type Labels[T ~string] map[T]metric.MeasurementOption

// LabelsOf makes the options of a label's values.
func LabelsOf[T ~string](key attribute.Key, values ...T) Labels[T] {
	l := make(Labels[T], len(values))
	for _, v := range values {
		l[v] = metric.WithAttributeSet(attribute.NewSet(key.String(string(v))))
	}
	return l
}

// Observe reports a count for each value, zero where counts has none, so that a series is there before it counts.
func Observe[T ~string, N int | int64 | uint64](o metric.Observer, of metric.Int64Observable, labels Labels[T], counts map[T]N) {
	for value, label := range labels {
		o.ObserveInt64(of, int64(counts[value]), label)
	}
}
