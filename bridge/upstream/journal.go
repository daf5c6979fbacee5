package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// logSize bounds one line of what a server logs, in bytes; of more the beginning is kept.
const logSize = 500

// log keeps one notifications/message, as a line. Secrets are looked for in more than is kept, so that none is cut in two before that.
func (in *inbox) log(params json.RawMessage) {
	var p struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	said := textOf(p.Data)
	var compact bytes.Buffer
	if strings.HasPrefix(said, "{") && json.Compact(&compact, p.Data) == nil {
		said = compact.String()
	}
	line := fmt.Sprintf("[%s] %s", cmp.Or(p.Level, "log"), strings.TrimPrefix(p.Logger+": ", ": ")) + said
	line = text.First(in.mask.text(text.First(line, 4*logSize)), logSize)
	_, _ = in.journal.Write([]byte(strings.Join(strings.Fields(line), " ") + "\n"))
}

// greeting reads from the answer to initialize, among others, whether the server logs.
func (in *inbox) greeting(result json.RawMessage) {
	var r struct {
		Capabilities struct {
			Logging json.RawMessage `json:"logging"`
		} `json:"capabilities"`
	}
	if json.Unmarshal(result, &r) == nil && string(orNull(r.Capabilities.Logging)) != "null" {
		in.logs.Store(true)
	}
}
