package client

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// A Replica is the name of one of several bridges behind a proxy; empty for the only one. The ids
// of what it alone has carry its name, so that another one can say where to go with them.
type Replica string

// CodeMisdirected is the code of the error for an id of another replica. Its data names that one.
const CodeMisdirected = -32010

var replicaName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Valid reports whether the name can stand in ids: it is one of DNS, as pods have.
func (r Replica) Valid() bool { return replicaName.MatchString(string(r)) }

// Suffix returns what r's ids end in.
func (r Replica) Suffix() string {
	if r == "" {
		return ""
	}
	return "." + string(r)
}

// Other returns whose an id is that carries another replica's name, or nothing. It says nothing of
// whether there is such a replica, or such an id.
func (r Replica) Other(id string) Replica {
	at := strings.LastIndexByte(id, '.')
	if r == "" || at < 0 {
		return ""
	}
	other := Replica(id[at+1:])
	if other == r || !other.Valid() {
		return ""
	}
	return other
}

// Misdirect returns the error for a request with an id of another replica.
func (r Replica) Misdirect(id string, other Replica) mcp.JSONRPCMessage {
	why := fmt.Sprintf("%.80q is of the replica %s, and this is %s, which knows nothing of it: have that one "+
		"answer, or go on without it", id, other, r)
	return mcp.JSONRPCError{JSONRPC: mcp.JSONRPC_VERSION, Error: mcp.NewJSONRPCErrorDetails(
		CodeMisdirected, why, map[string]string{"replica": string(other)})}
}
