package main

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spans are those that a collector got, by name, each with its parent's id and its own.
type spans struct {
	mu     sync.Mutex
	parent map[string]string // by name
	id     map[string]string // by name
	trace  map[string]bool   // ids of the traces
	about  string            // what the last of them said of the service
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-protobuf")
	if r.URL.Path != "/v1/traces" {
		return
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	text, err := io.ReadAll(io.LimitReader(body, 1<<20))
	var sent collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(text, &sent)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range sent.ResourceSpans {
		s.about = resource.Resource.String()
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				s.id[span.Name], s.parent[span.Name] = hex.EncodeToString(span.SpanId),
					hex.EncodeToString(span.ParentSpanId)
				s.trace[hex.EncodeToString(span.TraceId)] = true
			}
		}
	}
}

// TestTraces: the spans of a real call, in a container, over a real server, reach a collector with
// the right parents when the bridge ends, and the client's own trace is theirs.
func TestTraces(t *testing.T) {
	needTime(t)
	needEngine(t)
	got := &spans{parent: map[string]string{}, id: map[string]string{}, trace: map[string]bool{}}
	server := httptest.NewServer(got)
	defer server.Close()
	c := serve(t, with(command(t, map[string]entry{"shop": shop(t)}), "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL,
		"OTEL_SERVICE_NAME=tested"))
	answer := parseAnswer(t, c.request("tools/call", map[string]any{
		"name": "run_python",
		"arguments": map[string]any{"code": "import os\nprint(mcp_shop.add(a=1, b=2), [k for k in os.environ if " +
			"'OTEL' in k])", "servers": []string{"shop"}},
		"_meta": map[string]any{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}))
	if answer.IsError || strings.TrimSpace(answer.Text) != "{'sum': 3} []" {
		t.Errorf("got %+v", answer)
	}
	c.stdin.Close()
	<-c.ended // its output ends with the process
	got.mu.Lock()
	defer got.mu.Unlock()
	want := map[string]string{
		"tools/call run_python": "b7ad6b7169203331",
		"lease":                 got.id["tools/call run_python"],
		"run":                   got.id["tools/call run_python"],
		"call shop.add":         got.id["run"],
		"upstream tools/call":   got.id["call shop.add"],
	}
	for name, parent := range want {
		if got.id[name] == "" || got.parent[name] != parent {
			t.Errorf("span %s: id %q, parent %q, not %q", name, got.id[name], got.parent[name], parent)
		}
	}
	if !strings.Contains(got.about, "tested") || !strings.Contains(got.about, "service.version") {
		t.Errorf("they are of %s", got.about)
	}
	if len(got.id) != len(want) || len(got.trace) != 1 || !got.trace["0af7651916cd43dd8448eb211c80319c"] {
		t.Errorf("got %v in traces %v", got.id, got.trace)
	}
}
