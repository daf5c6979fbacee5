//go:build unix

package upstream

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// What the fake does over the newer protocol (2026-07-28), in the modes whose names begin so.

func (s *server) discover(r request) {
	if !strings.HasPrefix(s.mode, "modern") {
		os.Exit(9)
	}
	tells := s.mode != "modern" && s.mode != "modern stale"
	s.result(r, fmt.Sprintf(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":%v}},`+
		`"resultType":"complete","ttlMs":0,"cacheScope":"private",`+
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}}}`, tells))
}

// listen is asked to tell of changes.
func (s *server) listen(r request) {
	s.listens++
	s.listening = r.ID
	acknowledge := func() {
		s.send(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged",`+
			`"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},`+
			`"notifications":{"toolsListChanged":true}}}`, r.ID)
	}
	switch s.mode {
	case "modern tells":
		acknowledge()
	case "modern floods":
		acknowledge()
		for range 8000 {
			s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed",`+
				`"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, r.ID)
		}
		s.result(r, `{"resultType":"complete"}`)
	case "modern hangs up":
		acknowledge()
		s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, r.ID)
	default:
		s.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, r.ID)
	}
}

// input answers with the results that the arguments say, one for each request, and then with what
// it was told last.
func (s *server) input(r request) {
	var a struct{ Rounds []json.RawMessage }
	_ = json.Unmarshal(r.Params.Arguments, &a)
	if s.rounds < len(a.Rounds) {
		s.rounds++
		s.result(r, string(a.Rounds[s.rounds-1]))
		return
	}
	s.rounds = 0
	var meta struct {
		Abilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
	}
	_ = json.Unmarshal(r.Params.Meta, &meta)
	s.result(r, fmt.Sprintf(`{"resultType":"complete","answers":%s,"state":%s,"can":%s}`,
		orNull(r.Params.Answers), orNull(r.Params.State), orNull(meta.Abilities)))
}

// demand is input without end, in the ways that no server should.
func (s *server) demand(r request) {
	ask := func(requests, state string) {
		s.result(r, fmt.Sprintf(`{"resultType":"input_required","inputRequests":%s,"requestState":%s}`, requests,
			state))
	}
	const roots = `{"method":"roots/list"}`
	switch strings.TrimPrefix(r.Params.Name, "demand ") {
	case "always":
		ask(`{"r":`+roots+`}`, `"s"`)
	case "patience":
		ask(`{}`, `"s"`)
	case "memory":
		ask(`{"r":`+roots+`}`, `"`+strings.Repeat("x", 2<<20)+`"`)
	case "much":
		ask(`{"a":`+roots+strings.Join(strings.SplitAfter(`,"b":,"c":,"d":,"e":,"f":,"g":,"h":,"i":`, ":"),
			roots)+`}`, `null`)
	case "the unknown":
		ask(`{"r":{"method":"tasks/list"}}`, `null`)
	case "nothing":
		ask(`null`, `null`)
	case "the future":
		s.result(r, `{"resultType":"task","task":{}}`)
	case "no object":
		ask(`[1]`, `null`)
	}
}
