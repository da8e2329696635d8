package telemetry

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// environment is what the standard variables say that the SDK and the exporters do not read by themselves:
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/. Only where they differ from it: a signal
// without an endpoint is not exported, and without a protocol it is http/protobuf.
type environment struct {
	off             bool // OTEL_SDK_DISABLED
	metrics, traces signal
}

// signal says how one kind of telemetry is exported by OTLP.
type signal struct{ on, grpc bool }

// Check reads the OTEL_* variables of the process as New does, and returns what is wrong with them.
func Check() error {
	_, err := readEnvironment()
	return err
}

func readEnvironment() (e environment, err error) {
	e.off = strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true")
	if e.off {
		return e, nil
	}
	if e.metrics, err = readSignal("METRICS"); err != nil {
		return e, err
	}
	e.traces, err = readSignal("TRACES")
	return e, err
}

// readSignal reads the variables of METRICS or TRACES.
func readSignal(name string) (s signal, err error) {
	endpoint, err := readEndpoint("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_"+name+"_ENDPOINT")
	if err != nil {
		return s, err
	}
	exporters := "OTEL_" + name + "_EXPORTER"
	switch value := os.Getenv(exporters); value {
	case "":
		s.on = endpoint
	case "otlp":
		s.on = true
	case "none":
	case "prometheus":
		if name != "METRICS" {
			return s, fmt.Errorf("%s is %q, must be otlp or none", exporters, value)
		}
	default:
		return s, fmt.Errorf("%s is %q, must be otlp or none", exporters, value)
	}
	variable, protocol := "OTEL_EXPORTER_OTLP_"+name+"_PROTOCOL", ""
	if protocol = os.Getenv(variable); protocol == "" {
		variable = "OTEL_EXPORTER_OTLP_PROTOCOL"
		protocol = os.Getenv(variable)
	}
	switch protocol {
	case "", "http/protobuf":
	case "grpc":
		s.grpc = true
	default:
		return s, fmt.Errorf("%s is %q, must be http/protobuf or grpc", variable, protocol)
	}
	return s, nil
}

// readEndpoint tells whether one of the variables is set. The exporters would ignore a value that is no URL.
func readEndpoint(variables ...string) (set bool, err error) {
	for _, v := range variables {
		value := os.Getenv(v)
		if value == "" {
			continue
		}
		u, err := url.Parse(value)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return false, fmt.Errorf("%s must be a URL with http or https, as http://127.0.0.1:4318", v) // it may hold a secret
		}
		set = true
	}
	return set, nil
}

func (s signal) metricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	if s.grpc {
		return otlpmetricgrpc.New(ctx)
	}
	return otlpmetrichttp.New(ctx)
}

func (s signal) spanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if s.grpc {
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx)
}
