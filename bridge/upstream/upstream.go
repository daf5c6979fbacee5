// Package upstream keeps the connections to the user's MCP servers: one lazily started, persistent
// client for each, shared by all calls. It hands out what a server said as it said it: raw tool
// definitions, raw results, raw errors.
//
// A Pool starts a server with the first call that needs it, under its own context; callers wait for
// that under theirs. A server that died is started again by the next call, and no call is ever
// repeated of which nothing was heard: a tool may have done its work before the connection broke.
// Close ends every server with everything it started, within a bound.
//
// A server is a program of ours (stdio.go) or at a URL (http.go): a session has one peer, and is
// the same over both.
//
// What a server is given is its own configuration and a minimal environment, never the bridge's.
// What it sends is bounded (the length of a line, the number of pages, what it leaves unread), and
// whatever it does breaks at most its own session.
//
// The package knows nothing of guest code, of policy, or of how results are shown.
package upstream

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

// Config is what a Pool is made from. The zero value of each field but Servers means the default
// that it names.
type Config struct {
	Servers []discovery.Server // by unique names

	// Guard is told the process group of every server, so that they end with the bridge even when it
	// is killed. Nil: there is no guard.
	Guard guard.Groups
	// Logins has the tokens for servers that want a login; the pool closes it. Nil: there are no
	// logins.
	Logins Logins
	// Listed is told the tools of a server each time when it has listed them, with the name and
	// version that it gave itself, and the beginning of what it says it is for. It is called
	// concurrently and must not block long, since the caller of the list waits. It may be nil.
	Listed func(server discovery.Server, version, purpose string, tools []Tool)
	// Refuse says why a server may not be started, or nil. It is called before each start,
	// concurrently, and must not block. Nil refuses none.
	Refuse func(server discovery.Server) error
	// Secret returns the value of one of the user's secrets, which some servers are given when they
	// are started. It may ask the user, and is called concurrently. Nil: no secrets can be read.
	Secret func(name string) (string, error)
	// Log takes one line for each server that was started or ended. Nil: silence.
	Log *slog.Logger

	StartTimeout time.Duration // from the start of a server to its answer to initialize; 20 s
	ListTimeout  time.Duration // for all pages of one list; 20 s
	StallTimeout time.Duration // how long a server may leave its input unread while there is some; 60 s
	CallTimeout  time.Duration // for one call, beside its context; 10 min
	PingTimeout  time.Duration // for a ping, where a call was given up before; 20 s
	IdleTimeout  time.Duration // without use, until a server is ended; 15 min
	CloseTimeout time.Duration // for Close as a whole; 5 s

	MaxCalls int // of one server at a time, lists not counted; further ones wait. 64
	MaxQueue int // that wait so; further ones are refused. 1024

	MaxLine int // bytes of one message from a server; 16 MiB
	MaxList int // bytes of all pages of one list; 64 MiB

	LogLevel string // from which on a server is asked to log, where it can: debug … emergency; "warning"

	ClientVersion string   // said to servers; "dev"
	Instance      string   // by which this process knows itself when it is a server's; see SelfCapability
	Environ       []string // the environment to take the few variables from that every server gets; os.Environ()

	long chan struct{} // holds one for each long answer that is read
}

// Tool is one tool as its server defines it. The raw fields are the server's own JSON, which need
// not be valid schemas; those it didn't send are nil.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	Invalid      string          `json:"invalid,omitempty"` // why it can't be called; empty where it can
}

func (c Config) withDefaults() Config {
	setDefault(&c.StartTimeout, 20*time.Second)
	setDefault(&c.ListTimeout, 20*time.Second)
	setDefault(&c.StallTimeout, time.Minute)
	setDefault(&c.CallTimeout, 10*time.Minute)
	setDefault(&c.PingTimeout, 20*time.Second)
	setDefault(&c.IdleTimeout, 15*time.Minute)
	setDefault(&c.CloseTimeout, 5*time.Second)
	setDefault(&c.MaxCalls, 64)
	setDefault(&c.MaxQueue, 1024)
	setDefault(&c.LogLevel, "warning")
	setDefault(&c.MaxLine, 16<<20)
	setDefault(&c.MaxList, 64<<20)
	setDefault(&c.ClientVersion, "dev")
	c.long = make(chan struct{}, longAnswers)
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	if c.Secret == nil {
		c.Secret = func(string) (string, error) { return "", errors.New("no secrets can be read") }
	}
	setDefault(&c.Log, slog.New(slog.DiscardHandler))
	return c
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
