package telemetry

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	noopmetric "go.opentelemetry.io/otel/metric/noop"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// TestOffCostsNothing: without variables, or with those that switch it off, there is no goroutine
// and nothing but what does nothing.
func TestOffCostsNothing(t *testing.T) {
	for name, vars := range map[string]map[string]string{
		"no variables": nil,
		"disabled":     {"OTEL_SDK_DISABLED": "True", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
		"no exporters": {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
		"others' names": {"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "always_on"},
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			tel, err := Start(t.Context(), Config{Name: "x", Getenv: env(vars)})
			if err != nil {
				t.Fatal(err)
			}
			_, traces := tel.Traces.(nooptrace.TracerProvider)
			_, metrics := tel.Metrics.(noopmetric.MeterProvider)
			if !traces || !metrics || runtime.NumGoroutine() > before {
				t.Errorf("%T, %T, and %d goroutines more", tel.Traces, tel.Metrics, runtime.NumGoroutine()-before)
			}
			if _, span := tel.Traces.Tracer("x").Start(t.Context(), "x"); span.IsRecording() ||
				span.SpanContext().IsValid() {
				t.Error("it makes spans")
			}
			if err := tel.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for _, tc := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{"OTEL_TRACES_EXPORTER": "jaeger"},
			`OTEL_TRACES_EXPORTER="jaeger": there is otlp, and none`},
		{map[string]string{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
			`OTEL_EXPORTER_OTLP_PROTOCOL="grpc": there is http/protobuf only`},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x",
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="http/json"`},
	} {
		tel, err := Start(t.Context(), Config{Getenv: env(tc.vars)})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v", tc.vars, err)
		}
		if _, off := tel.Traces.(nooptrace.TracerProvider); !off {
			t.Errorf("%v: it is on all the same", tc.vars)
		}
	}
}

// unsent is telemetry that has one span and one measurement left to send.
func unsent(t *testing.T, vars map[string]string, log *slog.Logger) *Telemetry {
	t.Helper()
	for k, v := range vars {
		t.Setenv(k, v) // the exporters read them themselves
	}
	tel, err := Start(t.Context(), Config{Name: "x", Version: "1", Getenv: env(vars), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tel.Traces.Tracer("x").Start(t.Context(), "s")
	span.End()
	counter, err := tel.Metrics.Meter("x").Int64Counter("c")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(t.Context(), 1)
	return tel
}

// TestExport: each signal goes where its own variable says, and what is left is sent at the end.
func TestExport(t *testing.T) {
	var traces, metrics atomic.Int32
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/t":
			traces.Add(1)
		case "/v1/metrics":
			metrics.Add(1)
		default:
			t.Errorf("a request for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	vars := map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.URL + "/t",
		"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}
	tel := unsent(t, vars, nil)
	if err := tel.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if traces.Load() != 1 || metrics.Load() != 1 {
		t.Errorf("%d requests with traces, %d with metrics", traces.Load(), metrics.Load())
	}
}
