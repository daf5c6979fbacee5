package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// watched is a bridge whose spans and metrics are kept. Its code calls github.me, and a server that
// isn't there.
func watched(t testing.TB, call func(ctx context.Context) error) (*Bridge, *tracetest.SpanRecorder,
	*sdkmetric.ManualReader) {
	spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	return build(t, func(c *Config) {
		c.Traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		c.Metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		c.Upstreams = fakeUpstreams{tools: c.Upstreams.(fakeUpstreams).tools,
			call: func(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(`{}`), call(ctx)
			}}
		c.Runner = fakeRunner{run: func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			r.Began(true)
			_, _ = h.Call(ctx, sandbox.Call{Provider: "github", Tool: "me", Input: json.RawMessage(`{"q":"hunter2"}`)})
			_, _ = h.Call(ctx, sandbox.Call{Provider: "hunter2", Tool: "hunter2"})
			return printed("x"), nil
		}}
	}), spans, reader
}

// TestSpans: a call of run_python is a trace, the client's own if it names one, of which the server
// that is called gets to know.
func TestSpans(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	carrier := propagation.MapCarrier{}
	b, recorder, _ := watched(t, func(ctx context.Context) error {
		propagation.TraceContext{}.Inject(ctx, carrier)
		return nil
	})
	p := connect(t, b)
	p.run(1, `{"code":"secret = 'hunter2'"}`, `{"traceparent":"`+parent+`","progressToken":"t"}`)
	for f := p.next(); f.ID == nil; f = p.next() { // past the progress
	}
	names := map[trace.SpanID]string{}
	for _, s := range recorder.Ended() {
		names[s.SpanContext().SpanID()] = s.Name()
	}
	var got []string
	for _, s := range recorder.Ended() {
		if s.SpanContext().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is in a trace of its own", s.Name())
		}
		above := names[s.Parent().SpanID()]
		if above == "" {
			above = s.Parent().SpanID().String()
		}
		got = append(got, fmt.Sprintf("%s < %s: %v", s.Name(), above, s.Status().Code))
		if text := fmt.Sprint(s.Attributes(), s.Events(), s.Status()); strings.Contains(text, "hunter2") {
			t.Errorf("%s says %s", s.Name(), text)
		}
	}
	want := []string{
		"lease < tools/call run_python: Unset",
		"upstream tools/call < call github.me: Unset",
		"call github.me < run: Unset",
		"call . < run: Error",
		"run < tools/call run_python: Unset",
		"tools/call run_python < b7ad6b7169203331: Unset",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if !strings.HasPrefix(carrier["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-") ||
		strings.Contains(carrier["traceparent"], "b7ad6b7169203331") {
		t.Errorf("the server is told %v", carrier)
	}
}

// TestOddTraceparent: what is no trace is no reason not to run.
func TestOddTraceparent(t *testing.T) {
	b, recorder, _ := watched(t, func(context.Context) error { return nil })
	for i, meta := range []string{`{"traceparent":"rubbish"}`, `{"traceparent":7}`, `{"traceparent":""}`} {
		p := connect(t, b)
		p.run(i, `{"code":"x"}`, meta)
		p.next().tool(t)
	}
	for _, s := range recorder.Ended() {
		if s.Name() == "tools/call run_python" && s.Parent().IsValid() {
			t.Errorf("it has the parent %v", s.Parent())
		}
	}
}

func TestMetrics(t *testing.T) {
	b, _, reader := watched(t, func(context.Context) error { return errors.New("boom hunter2") })
	connect(t, b).call(`{"code":"x"}`)
	connect(t, b).call(`{"cod":"x"}`)
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			add := func(set attribute.Set, n int64) {
				got[m.Name+" "+set.Encoded(attribute.DefaultEncoder())] += n
			}
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(p.Attributes, int64(p.Count))
				}
			}
		}
	}
	want := map[string]int64{
		"mcp_bridge.runs status=ok":                                 1,
		"mcp_bridge.runs status=validation_error":                   1,
		"mcp_bridge.run.duration status=ok":                         1,
		"mcp_bridge.run.duration status=validation_error":           1,
		"mcp_bridge.runs.active ":                                   0,
		"mcp_bridge.queue.duration ":                                2,
		"mcp_bridge.leases standby=true":                            1,
		"mcp_bridge.calls outcome=tool_error,server=github":         1,
		"mcp_bridge.calls outcome=validation_error,server=":         1,
		"mcp_bridge.call.duration outcome=tool_error,server=github": 1,
		"mcp_bridge.call.duration outcome=validation_error,server=": 1,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

// TestSignalsOffCostNothing: without a collector, a run and its calls allocate nothing for spans
// and metrics, and what the client said
// of its trace reaches the server all the same.
func TestSignalsOffCostNothing(t *testing.T) {
	s, err := newTelemetry(nil, nil, "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(
		trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Remote: true}))
	server := func(ctx context.Context) (bool, error) { return trace.SpanContextFromContext(ctx).IsValid(), nil }
	n := testing.AllocsPerRun(100, func() {
		runs, ended := s.begin(ctx, "id")
		e := s.execution(runs)
		e.lease()
		e.began(true)
		calls, called := s.call(e.within(runs))
		if known, err := upstreamSpan(calls, s, "github", "tools/call", "me", server); !known || err != nil {
			t.Errorf("the server isn't told of the client's trace: %v", err)
		}
		called(audit.Record{}, true, time.Second)
		e.end("ok")
		ended("ok", sandbox.Took{})
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
