package streamable

import (
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

const (
	headerVersion = mcp.HeaderProtocolVersion
	headerSession = mcp.HeaderSessionID
	headerEvent   = mcp.HeaderLastEventID
	headerRequest = "X-Request-Id"       // of each answer: what the log names the request by
	headerReplica = "Mcp-Bridge-Replica" // of an answer with 421: which replica can answer

	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// Loopback are the hosts by which programs of a machine reach it.
var Loopback = []string{"localhost", "127.0.0.1", "::1"}

// foreign returns why a request is refused whose Host or Origin isn't one of ours: a page may have
// had the browser send it.
func (h *Handler) foreign(r *http.Request) string {
	if !listed(h.cfg.Hosts, r.Host) {
		return fmt.Sprintf("the Host %.100q isn't served: see --allow-host", r.Host)
	}
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(h.cfg.Origins, origin) || strings.HasPrefix(r.URL.Path, wellKnown) {
		return ""
	}
	u, err := url.Parse(origin)
	if err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) && (r.TLS == nil || u.Scheme == "https") {
		return "" // where TLS isn't ours, a proxy may have it
	}
	return fmt.Sprintf("pages of the Origin %.100q are not served: see --allow-origin", origin)
}

// listed reports whether hosts has a host, with its port or without.
func listed(hosts []string, host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return slices.ContainsFunc(hosts, func(known string) bool {
		return strings.EqualFold(known, host) || strings.EqualFold(strings.Trim(known, "[]"), name)
	})
}

// shareWith lets the pages of an Origin that is served read the answer.
func (h *Handler) shareWith(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if !slices.Contains(h.cfg.Origins, origin) {
		return
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", headerSession+", "+headerRequest+", WWW-Authenticate")
	header.Add("Vary", "Origin")
	if r.Method == http.MethodOptions {
		header.Set("Access-Control-Allow-Methods", "POST, GET, DELETE")
		header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
		header.Set("Access-Control-Max-Age", "600")
	}
}

// accepts reports whether a request takes answers of all the types. One that doesn't say takes any.
func accepts(r *http.Request, types ...string) bool {
	ranges := strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",")
	if len(ranges) == 1 && ranges[0] == "" {
		return true
	}
	for _, wanted := range types {
		whole, _, _ := strings.Cut(wanted, "/")
		if !slices.ContainsFunc(ranges, func(given string) bool {
			kind, params, err := mime.ParseMediaType(given)
			return err == nil && params["q"] != "0" && (kind == wanted || kind == "*/*" || kind == whole+"/*")
		}) {
			return false
		}
	}
	return true
}

// isJSON reports whether a request says that its body is JSON.
func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == typeJSON
}

// modern reports whether a version of the protocol has no sessions.
func modern(version string) bool { return mcp.IsModernProtocol(version) }

// metaVersion returns the version that a message names in itself, or nothing.
func metaVersion(m *jsonrpc.Message) string {
	var p struct {
		Meta struct {
			Version json.RawMessage `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p) // what is wrong with it is found by who reads it all
	var version string
	_ = json.Unmarshal(p.Meta.Version, &version)
	return version
}

// mismatched returns what is wrong with the headers of a request of 2026-07-28, or nil. Its _meta
// is bridge/client's to check, except for the version, which must be given here.
func mismatched(header http.Header, m *jsonrpc.Message, version string) *jsonrpc.Error {
	wrong := func(format string, a ...any) *jsonrpc.Error {
		return &jsonrpc.Error{Code: mcp.HEADER_MISMATCH, Message: fmt.Sprintf(format, a...)}
	}
	said := header.Get(headerVersion)
	switch {
	case header.Get(headerEvent) != "":
		return wrong("Last-Event-ID is not of this protocol: send the request again, with a new id")
	case said == "":
		return wrong("the header %s is missing; the request's _meta says %.40q", headerVersion, version)
	case version == "":
		return &jsonrpc.Error{Code: mcp.INVALID_PARAMS,
			Message: "params._meta must hold " + mcp.MetaKeyProtocolVersion + ", a string"}
	case said != version:
		return wrong("the header %s says %.40q, and the request's _meta %.40q", headerVersion, said, version)
	}
	err := mcp.ValidateStandardHeaders(header.Get, version, mcp.MCPMethod(m.Method), m.Params)
	if err != nil {
		return wrong("%v", err)
	}
	return nil
}

// statusOf returns the status of an answer of 2026-07-28 that is an error of a code.
func statusOf(code int) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case client.CodeMisdirected:
		return http.StatusMisdirectedRequest
	case mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION,
		jsonrpc.CodeInvalidRequest, jsonrpc.CodeInvalidParams, jsonrpc.CodeParse:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// refuse answers a request with a sentence.
func refuse(w http.ResponseWriter, status int, why string) {
	refuseWith(w, status, jsonrpc.CodeBusy, nil, why)
}

// refuseWith answers with an error of JSON-RPC, which clients show.
func refuseWith(w http.ResponseWriter, status, code int, id json.RawMessage, why string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	body, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   jsonrpc.Error   `json:"error"`
	}{mcp.JSONRPC_VERSION, id, jsonrpc.Error{Code: code, Message: why}})
	if err != nil {
		body = nil // an id that is no JSON isn't sent back
	}
	if seen, ok := w.(*seenWriter); ok {
		seen.why = why
	}
	w.Header().Set("Content-Type", typeJSON)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
