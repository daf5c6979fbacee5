package bridge

import (
	"context"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// telemetry exports spans and a few metrics to a collector. The spans are of a call of run_python,
// of the wait for its container (lease), of its code (run), of each call of a tool by the code, and
// of the server's part in that. They never hold code, arguments or the text of errors. It is safe
// for concurrent use.
type telemetry struct {
	off    bool // there is no collector
	tracer trace.Tracer

	runs     metric.Int64Counter       // by status
	runTime  metric.Float64Histogram   // seconds of a call of run_python, by status
	active   metric.Int64UpDownCounter // runs admitted and not over
	queued   metric.Float64Histogram   // seconds until a run was admitted
	leases   metric.Int64Counter       // by whether a container was waiting
	calls    metric.Int64Counter       // of tools, by server and outcome
	callTime metric.Float64Histogram   // seconds, likewise
}

// newTelemetry returns telemetry to these providers. A nil provider gets nothing.
func newTelemetry(
	traces trace.TracerProvider, metrics metric.MeterProvider, version string,
) (*telemetry, error) {
	if traces == nil {
		traces = nooptrace.NewTracerProvider()
	}
	if metrics == nil {
		metrics = noopmetric.NewMeterProvider()
	}
	_, untraced := traces.(nooptrace.TracerProvider)
	_, unmeasured := metrics.(noopmetric.MeterProvider)
	s := &telemetry{
		off:    untraced && unmeasured,
		tracer: traces.Tracer(Name, trace.WithInstrumentationVersion(version)),
	}
	m := metrics.Meter(Name, metric.WithInstrumentationVersion(version))
	about, seconds := metric.WithDescription, metric.WithUnit("s")
	var errs [7]error
	s.runs, errs[0] = m.Int64Counter("mcp_bridge.runs", about("Calls of run_python that are over."))
	s.runTime, errs[1] = m.Float64Histogram("mcp_bridge.run.duration", seconds,
		about("How long they took, with all waiting."))
	s.active, errs[2] = m.Int64UpDownCounter("mcp_bridge.runs.active", about("Runs that take place."))
	s.queued, errs[3] = m.Float64Histogram("mcp_bridge.queue.duration", seconds,
		about("How long runs waited for others to end."))
	s.leases, errs[4] = m.Int64Counter("mcp_bridge.leases",
		about("Containers that runs had, by whether one was waiting for them."))
	s.calls, errs[5] = m.Int64Counter("mcp_bridge.calls", about("Calls that code has made to servers."))
	s.callTime, errs[6] = m.Float64Histogram("mcp_bridge.call.duration", seconds,
		about("How long they took, with all waiting."))
	return s, errors.Join(errs[:]...)
}

// carried returns ctx with the trace that the client's request belongs to, if _meta names one
// (SEP-414: traceparent and tracestate).
func carried(ctx context.Context, meta *mcp.Meta) context.Context {
	if meta == nil {
		return ctx
	}
	parent, _ := meta.AdditionalFields["traceparent"].(string)
	state, _ := meta.AdditionalFields["tracestate"].(string)
	from := propagation.MapCarrier{"traceparent": parent, "tracestate": state}
	return propagation.TraceContext{}.Extract(ctx, from)
}

// begin starts the span of a call of run_python. Its end counts the call.
func (s *telemetry) begin(ctx context.Context, id string) (
	inSpan context.Context, end func(status string, t sandbox.Took),
) {
	if s.off {
		return ctx, func(string, sandbox.Took) {}
	}
	ctx, span := s.tracer.Start(ctx, "tools/call "+runPythonName, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(
			attribute.String("mcp.method.name", "tools/call"),
			attribute.String("gen_ai.tool.name", runPythonName),
			attribute.String("mcp_bridge.run.id", id)))
	return ctx, func(status string, t sandbox.Took) {
		failing(span, status, string(sandbox.StatusOK))
		span.End()
		by := metric.WithAttributes(attribute.String("status", status))
		ctx := context.WithoutCancel(ctx)
		s.runs.Add(ctx, 1, by)
		s.runTime.Record(ctx, t.Total.Seconds(), by)
		s.queued.Record(ctx, t.Queued.Seconds())
	}
}

// failing sets the outcome of a span, which is an error unless it is fine.
func failing(span trace.Span, outcome, fine string) {
	span.SetAttributes(attribute.String("mcp_bridge.outcome", outcome))
	if outcome != fine {
		span.SetStatus(codes.Error, outcome)
	}
}

// execution is one run in the sandbox, for the spans of its two parts. Its methods are called on
// the run's goroutine, except within, which calls between began and end use.
type execution struct {
	telemetry *telemetry
	ctx       context.Context // of the call of run_python
	waits     trace.Span      // for a container; nil before that
	run       trace.Span      // nil until the code begins
}

// execution returns nil where nothing is exported, which all methods of an execution allow.
func (s *telemetry) execution(ctx context.Context) *execution {
	if s.off {
		return nil
	}
	return &execution{telemetry: s, ctx: ctx}
}

// lease notes that the wait for a container begins.
func (e *execution) lease() {
	if e == nil {
		return
	}
	e.telemetry.active.Add(context.WithoutCancel(e.ctx), 1)
	_, e.waits = e.telemetry.tracer.Start(e.ctx, "lease")
}

// began notes that the container is there and the code begins.
func (e *execution) began(waiting bool) {
	if e == nil {
		return
	}
	e.waits.SetAttributes(attribute.Bool("mcp_bridge.standby", waiting))
	e.waits.End()
	by := metric.WithAttributes(attribute.Bool("standby", waiting))
	e.telemetry.leases.Add(context.WithoutCancel(e.ctx), 1, by)
	_, e.run = e.telemetry.tracer.Start(e.ctx, "run")
}

// end ends the spans. It is called once, when no call is under way any more.
func (e *execution) end(status string) {
	if e == nil || e.waits == nil {
		return
	}
	e.telemetry.active.Add(context.WithoutCancel(e.ctx), -1)
	e.waits.End() // where the code never began; else it does nothing
	if e.run != nil {
		failing(e.run, status, string(sandbox.StatusOK))
		e.run.End()
	}
}

// within returns ctx in the span of the code, if that has begun. A nil e has none.
func (e *execution) within(ctx context.Context) context.Context {
	if e == nil || e.run == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, e.run)
}

// call starts the span of a call by the code. Its end takes what was recorded of it. Names of
// servers that aren't known are dropped, which bounds the metrics' cardinality.
func (s *telemetry) call(ctx context.Context) (
	inSpan context.Context, end func(r audit.Record, known bool, took time.Duration),
) {
	if s.off {
		return ctx, func(audit.Record, bool, time.Duration) {}
	}
	ctx, span := s.tracer.Start(ctx, "call")
	return ctx, func(r audit.Record, known bool, took time.Duration) {
		if !known {
			r.Server, r.Tool = "", ""
		}
		span.SetName("call " + r.Server + "." + r.Tool)
		span.SetAttributes(
			attribute.String("mcp_bridge.server", r.Server),
			attribute.String("mcp_bridge.tool", r.Tool),
			attribute.String("mcp_bridge.verdict", r.Verdict))
		failing(span, r.Outcome, audit.OutcomeOK)
		span.End()
		by := metric.WithAttributes(attribute.String("server", r.Server), attribute.String("outcome", r.Outcome))
		ctx := context.WithoutCancel(ctx)
		s.calls.Add(ctx, 1, by)
		s.callTime.Record(ctx, took.Seconds(), by)
	}
}

// upstreamSpan makes a request to a server in a span of its own, whose context is sent along.
func upstreamSpan[T any](
	ctx context.Context, s *telemetry, server, method, tool string, do func(context.Context) (T, error),
) (T, error) {
	if s.off {
		return do(ctx)
	}
	ctx, span := s.tracer.Start(ctx, "upstream "+method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("mcp.method.name", method),
			attribute.String("mcp_bridge.server", server),
			attribute.String("mcp_bridge.tool", tool)))
	defer span.End()
	result, err := do(ctx)
	if err != nil {
		span.SetStatus(codes.Error, "failed") // an error may quote arguments
	}
	return result, err
}
