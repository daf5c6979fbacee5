package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
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
	text := textOf(p.Data)
	var compact bytes.Buffer
	if strings.HasPrefix(text, "{") && json.Compact(&compact, p.Data) == nil {
		text = compact.String()
	}
	line := fmt.Sprintf("[%s] %s", cmp.Or(p.Level, "log"), strings.TrimPrefix(p.Logger+": ", ": ")) + text
	line = beginning(in.mask.text(beginning(line, 4*logSize)), logSize)
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
