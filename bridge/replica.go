package bridge

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Replica is the name of a bridge where there are others behind the same URL.
type Replica = client.Replica

// newID names a call in the log, in its container's labels, and for who reads what it has left.
func (b *Bridge) newID() string { return randomID() + b.cfg.Replica.Suffix() }

// elsewhere returns the answer to a request that names what another replica than own has: a
// sandbox, a run, a file of one, or a call that waits for answers. It returns nil for any other.
func elsewhere(own Replica, r *client.Request) mcp.JSONRPCMessage {
	if own == "" {
		return nil
	}
	var m struct {
		Params struct {
			URI       json.RawMessage `json:"uri"`
			State     json.RawMessage `json:"requestState"`
			Arguments struct {
				Sandbox   json.RawMessage `json:"sandbox"`
				SandboxID json.RawMessage `json:"sandbox_id"`
				Run       json.RawMessage `json:"run"`
			} `json:"arguments"`
		} `json:"params"`
	}
	_ = json.Unmarshal(r.Text(), &m) // what is wrong with it is found by who reads the rest
	p := m.Params
	uri, _ := text.FromJSON(p.URI)
	ids := []string{output.RunOf(uri)}
	for _, raw := range []json.RawMessage{p.State, p.Arguments.Sandbox, p.Arguments.SandboxID, p.Arguments.Run} {
		id, _ := text.FromJSON(raw)
		ids = append(ids, id)
	}
	for _, id := range ids {
		if other := own.Other(id); other != "" {
			return own.Misdirect(id, other)
		}
	}
	return nil
}
