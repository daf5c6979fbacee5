package upstream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestTraceIsTold: a server learns of the trace of its call, beside whatever else it is told, and
// of none where there is none.
func TestTraceIsTold(t *testing.T) {
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
		TraceFlags: trace.FlagsSampled})
	traced := trace.ContextWithSpanContext(t.Context(), span)
	const parent = "00-01000000000000000000000000000000-0200000000000000-01"
	s := &session{}
	id := json.RawMessage(`"b-1"`)
	for _, tc := range []struct {
		name     string
		progress bool
		traced   bool
		want     map[string]any
	}{
		{"neither", false, false, nil},
		{"progress", true, false, map[string]any{"progressToken": id}},
		{"a trace", false, true, map[string]any{"traceparent": parent}},
		{"both", true, true, map[string]any{"progressToken": id, "traceparent": parent}},
	} {
		ctx := t.Context()
		if tc.traced {
			ctx = traced
		}
		if diff := cmp.Diff(tc.want, s.metaFor(ctx, id, tc.progress)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	s.meta = map[string]any{"own": 1}
	_ = s.metaFor(traced, id, true)
	if len(s.meta) != 1 {
		t.Errorf("what all requests carry has changed: %v", s.meta)
	}
}

// TestTelemetryVariablesStayHere: a server gets those that its own entry sets, and no others.
func TestTelemetryVariablesStayHere(t *testing.T) {
	own := discovery.Server{Env: map[string]string{"OTEL_SERVICE_NAME": "mine"}}
	from := []string{"PATH=/bin", "OTEL_EXPORTER_OTLP_HEADERS=key=secret", "OTEL_SERVICE_NAME=bridge",
		"MCP_BRIDGE_AUDIT=/x", "MCP_BRIDGE_POLICY=/y", "TRACEPARENT=z"}
	got := fmt.Sprint(environ(own.Env, from))
	if !strings.Contains(got, "OTEL_SERVICE_NAME=mine") || strings.Count(got, "OTEL_") != 1 ||
		strings.Contains(got, "AUDIT") || strings.Contains(got, "POLICY") || strings.Contains(got, "TRACEPARENT") {
		t.Errorf("got %s", got)
	}
}
