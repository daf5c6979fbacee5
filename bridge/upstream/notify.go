package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

// Progress is how far a server says that a call is.
type Progress struct {
	Progress float64
	Total    *float64 // nil where the server doesn't know
	Message  string   // at most MaxProgressText bytes; empty for none
}

// MaxProgressText bounds Progress.Message, in bytes; of a longer one the beginning is kept.
const MaxProgressText = 1000

// logSize bounds one line of what a server logs, in bytes; of more the beginning is kept.
const logSize = 500

// observers are told the progress of the requests with an id.
type observers struct{ byID sync.Map }

// observe calls f, unless it is nil, for each report of a request's progress until stop is called.
func (o *observers) observe(id json.RawMessage, f func(Progress)) (stop func()) {
	if f == nil {
		return func() {}
	}
	key := jsonrpc.TextOf(id)
	o.byID.Store(key, f)
	return func() { o.byID.Delete(key) }
}

// notified handles a notification, or an answer that no call waits for.
func (s *session) notified(m *jsonrpc.Message) {
	if m.Method != "" || m.ID != nil {
		s.doubt.heard()
	}
	switch m.Method {
	case "":
		if m.ID == nil {
			s.peer.noise(m.Raw)
		}
	case string(mcp.MethodNotificationToolsListChanged):
		s.tools.stale.Add(1)
	case string(mcp.MethodNotificationCancelled):
		s.changes.cancelled(m.Params)
	case mcp.MethodNotificationSubscriptionsAcknowledged:
		s.changes.acknowledged(m.Params)
	case string(mcp.MethodNotificationMessage):
		s.log(m.Params)
	case string(mcp.MethodNotificationProgress):
		s.progressed(m.Params)
	}
}

// progressed passes a report of progress to the caller. A malformed one, or one for a call that is
// over, is dropped.
func (s *session) progressed(params json.RawMessage) {
	var n struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress *float64        `json:"progress"`
		Total    *float64        `json:"total"`
		Message  string          `json:"message"`
	}
	if json.Unmarshal(params, &n) != nil || n.Progress == nil {
		return
	}
	s.conn.Waiting(n.Token, func() {
		if f, ok := s.progress.byID.Load(jsonrpc.TextOf(n.Token)); ok {
			f.(func(Progress))(Progress{Progress: *n.Progress, Total: n.Total,
				Message: s.mask.cut(n.Message, MaxProgressText)})
		}
	})
}

// log keeps one line that a server logs by the protocol.
func (s *session) log(params json.RawMessage) {
	var p struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	said := jsonrpc.TextOf(p.Data)
	var compact bytes.Buffer
	if strings.HasPrefix(said, "{") && json.Compact(&compact, p.Data) == nil {
		said = compact.String()
	}
	line := fmt.Sprintf("[%s] %s", cmp.Or(p.Level, "log"), strings.TrimPrefix(p.Logger+": ", ": ")) + said
	line = strings.Join(strings.Fields(s.mask.cut(line, logSize)), " ")
	_, _ = s.logged.Write([]byte(line + "\n"))
}
