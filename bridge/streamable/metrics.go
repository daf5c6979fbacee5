package streamable

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// counts are what /metrics shows.
type counts struct {
	byClass [6]atomic.Int64 // requests that were answered, by the first digit of the status
	streams atomic.Int64    // that GET has opened, now
}

func (c *counts) answered(status int) {
	if status == 0 {
		status = http.StatusOK
	}
	c.byClass[min(status/100, len(c.byClass)-1)].Add(1)
}

// serveMetrics writes the counts in Prometheus' text format.
func (h *Handler) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if _, ok := h.admit(w, r); !ok {
		return
	}
	sessions, begun, principals := h.sessions.count()
	calls, stopped := h.calls.count()
	draining := 0
	if stopped {
		draining = 1
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, m := range []struct {
		name, kind, help string
		value            int64
	}{
		{"sessions", "gauge", "Sessions that are open.", sessions},
		{"sessions_begun_total", "counter", "Sessions that have begun.", begun},
		{"requests_in_progress", "gauge", "Requests of MCP that are worked on.", int64(calls)},
		{"streams", "gauge", "Streams that GET has opened.", h.counts.streams.Load()},
		{"principals", "gauge", "Principals with a session or a request.", principals},
		{"held_bytes", "gauge", "Bytes of messages worked on, unread or kept.", int64(h.sessions.memory.count())},
		{"draining", "gauge", "Whether no new calls are taken.", int64(draining)},
	} {
		fmt.Fprintf(w, "# HELP mcp_bridge_http_%s %s\n# TYPE mcp_bridge_http_%s %s\nmcp_bridge_http_%s %d\n",
			m.name, m.help, m.name, m.kind, m.name, m.value)
	}
	const name = "mcp_bridge_http_responses_total"
	fmt.Fprintf(w, "# HELP %s HTTP requests that were answered, by status.\n# TYPE %s counter\n", name, name)
	for class := 2; class < len(h.counts.byClass); class++ {
		fmt.Fprintf(w, "%s{status=\"%dxx\"} %d\n", name, class, h.counts.byClass[class].Load())
	}
}
