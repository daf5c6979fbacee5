// Package telemetry sends traces and metrics to an OpenTelemetry collector, as the standard OTEL_*
// variables say. Without them it makes nothing that costs anything: no exporter, no goroutine, and
// spans and instruments that do nothing.
//
// It knows nothing of what is measured, and sets none of OpenTelemetry's globals but the handler of
// its own errors: libraries that would report through them stay silent.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

// closeTimeout is for what has not been sent yet when the program ends.
const closeTimeout = 3 * time.Second

// Config is what telemetry is made from.
type Config struct {
	Name, Version string                   // of the service, unless the environment says otherwise
	Getenv        func(name string) string // for what is on; the exporters read the environment themselves
	Log           *slog.Logger             // takes what can't be sent; nil means silence
}

// Telemetry is where spans and measurements go. Its providers are never nil.
type Telemetry struct {
	Traces  trace.TracerProvider
	Metrics metric.MeterProvider

	shutdown []func(context.Context) error
}

// Off returns telemetry that does nothing.
func Off() *Telemetry {
	return &Telemetry{Traces: nooptrace.NewTracerProvider(), Metrics: noopmetric.NewMeterProvider()}
}

// Start begins to export what the variables ask for. It opens no connection. An error names the
// variable; what is returned with it does nothing.
func Start(ctx context.Context, cfg Config) (*Telemetry, error) {
	traces, err := wanted(cfg.Getenv, "TRACES")
	if err != nil {
		return Off(), err
	}
	metrics, err := wanted(cfg.Getenv, "METRICS")
	if err != nil || !traces && !metrics {
		return Off(), err
	}
	log := cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("telemetry is not sent", "err",
			failure(err))
	}))
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", cfg.Name),
			attribute.String("service.version", cfg.Version)),
		resource.WithFromEnv())
	if err != nil {
		return Off(), fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t := Off()
	if traces {
		err = t.startTraces(ctx, about)
	}
	if err == nil && metrics {
		err = t.startMetrics(ctx, about)
	}
	if err != nil {
		return Off(), errors.Join(fmt.Errorf("making the OpenTelemetry exporter, see the OTEL_EXPORTER_OTLP_ "+
			"variables: %w", err), t.Close(ctx))
	}
	return t, nil
}

func (t *Telemetry) startTraces(ctx context.Context, about *resource.Resource) error {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return err
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	t.Traces, t.shutdown = p, append(t.shutdown, p.Shutdown)
	return nil
}

func (t *Telemetry) startMetrics(ctx context.Context, about *resource.Resource) error {
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return err
	}
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)),
		sdkmetric.WithResource(about))
	t.Metrics, t.shutdown = p, append(t.shutdown, p.Shutdown)
	return nil
}

// Close sends what is left, for a few seconds at most, whatever has become of ctx. The error is
// that something could not be sent.
func (t *Telemetry) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	var errs []error
	for _, f := range t.shutdown {
		if err := f(ctx); err != nil {
			errs = append(errs, failure(err))
		}
	}
	t.shutdown = nil
	return errors.Join(errs...)
}

// wanted reports whether a signal, such as TRACES, is to be exported. The specification has it
// exported to this machine unless told otherwise; here the user names an exporter or where to send,
// so that the program opens no connection unasked.
func wanted(getenv func(string) string, signal string) (bool, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	name := "OTEL_" + signal + "_EXPORTER"
	switch exporter := strings.TrimSpace(getenv(name)); exporter {
	case "none":
		return false, nil
	case "otlp":
	case "":
		if getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") == "" {
			return false, nil
		}
	default:
		return false, fmt.Errorf("%s=%q: there is otlp, and none", name, exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch protocol := strings.TrimSpace(getenv(name)); protocol {
		case "":
			continue
		case "http/protobuf":
			return true, nil
		default:
			return false, fmt.Errorf("%s=%q: there is http/protobuf only, which collectors take on port 4318", name,
				protocol)
		}
	}
	return true, nil
}
