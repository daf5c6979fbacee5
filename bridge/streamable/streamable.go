// Package streamable serves MCP over Streamable HTTP, both with sessions (2025-03-26 to 2025-11-25)
// and without (2026-07-28). What a message means is decided by bridge/client, as over stdio; this
// package finds who has sent it, which client it is of, and where the answer goes.
//
// It is written here because mcp-go's server lets a client of 2026-07-28 cancel another one's call,
// loses progress, accepts each Origin, and bounds neither bodies nor what it keeps of streams.
//
// All that a peer does is bounded: headers, bodies, the time for both, what is sent and not read,
// and the streams, sessions and requests of each principal.
package streamable

import (
	"cmp"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
)

const (
	headerTimeout = 10 * time.Second // from the first byte of a connection, or of a request
	bodyTimeout   = time.Minute
	writeTimeout  = 30 * time.Second // for each chunk
	slowest       = 64 << 10         // bytes a second that a message is read at, after writeTimeout
	keepAlive     = 2 * time.Minute  // of a connection without a request
	maxHeaders    = 32 << 10         // bytes
	ping          = 15 * time.Second // between comments on a stream that is quiet
	quiet         = 2 * time.Second  // until a stream begins that has nothing to say yet

	idleTimeout = 30 * time.Minute // of a session
	keepTime    = 5 * time.Minute  // of what was sent on a stream, from its end on
	endTime     = 5 * time.Second  // for sessions to end then
	hangUpTime  = time.Second      // for the answers to calls that end with their session

	maxBuffered = 256 << 10 // bytes that a connection of HTTP/2 may send before they are asked for

	mostConns    = 16384   // connections, and half of the files that may be open
	maxSessions  = 8192    // of all principals
	maxOwned     = 1024    // sessions of a principal, of which the longest idle one makes room
	maxInFlight  = 1024    // requests of a principal that aren't answered
	maxStreams   = 2048    // and those that are answered with a stream apart from calls
	maxKeptOwned = 8 << 20 // bytes kept of a session's streams
	maxOver      = 16      // streams of a session that are kept though they are over
)

// Path is where MCP is served.
const Path = "/mcp"

// wellKnown is what stands before the paths of documents that are for all who read them, pages of
// any Origin included.
const wellKnown = "/.well-known/"

// Config is what a Handler is made of.
type Config struct {
	Clients *client.Clients // required

	// Hosts and Origins are whose requests are answered, by their headers: hosts with or without a
	// port, and whole origins. An Origin that is the Host's own needs no entry.
	Hosts, Origins []string

	// Authenticate returns to whom a request belongs. It is called before the body is read. Its error
	// is a *Refusal, or one that is logged and answered with 500. Nil: all belong to client.Local.
	Authenticate func(*http.Request) (principal string, err error)

	// WellKnown answers requests below /.well-known/, without authentication; nil for none.
	WellKnown http.Handler

	// Replica is the bridge's name where there are others behind the same address: its sessions carry
	// it, and those of another one are answered with 421 and that one's name. Clients know it too.
	Replica client.Replica

	// Proxied says that a proxy is in front, which has all the connections, and tells by
	// X-Forwarded-For whose they are.
	Proxied bool

	// DrainTime is how long calls that run may go on when the server is told to end; 0 ends them then.
	DrainTime time.Duration

	// Lost, which may be nil, returns why no code can be run for now. /healthz is 503 while it does.
	Lost func() error

	Metrics bool         // whether /metrics is served, to those whom Authenticate lets in
	Log     *slog.Logger // nil means silence
}

// A Refusal is how a request is answered that isn't let in.
type Refusal struct {
	Status          int
	WWWAuthenticate string // the header; empty for none
	Message         string
}

func (r *Refusal) Error() string { return r.Message }

var (
	errEnding  = errors.New("the bridge is ending")
	errBarred  = errors.New("the client's token isn't taken any more")
	errDeleted = errors.New("the client has ended its session")
	errIdle    = errors.New("the session was not used for " + idleTimeout.String())
	errRefused = errors.New("initialize was refused")
	errRoom    = errors.New("the session was the longest idle one, and made room for another")
)

// A Handler answers HTTP requests. It is safe for concurrent use. Close must be called.
type Handler struct {
	cfg      Config
	mux      *http.ServeMux
	sessions *sessions
	calls    calls
	counts   counts
	turned   refusals
}

// New returns a Handler.
func New(cfg Config) *Handler {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	h := &Handler{
		cfg: cfg, mux: http.NewServeMux(), sessions: newSessions(cfg), calls: calls{drained: make(chan struct{})},
		turned: refusals{log: cfg.Log, proxied: cfg.Proxied, byStatus: map[int]*refused{}},
	}
	h.mux.HandleFunc(Path, h.serveMCP)
	h.mux.HandleFunc("/healthz", h.serveHealth)
	if cfg.WellKnown != nil {
		h.mux.Handle(wellKnown, cfg.WellKnown)
	}
	if cfg.Metrics {
		h.mux.HandleFunc("/metrics", h.serveMetrics)
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "there is nothing here: MCP is served at "+Path)
	})
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen := &seenWriter{ResponseWriter: w, name: rand.Text()[:8]}
	seen.Header().Set(headerRequest, seen.name)
	health := r.URL.Path == "/healthz"
	defer func() {
		h.counts.answered(seen.status)
		if seen.why != "" && !health {
			h.turned.add(r, seen)
		}
	}()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	if health { // which an orchestrator asks by an address of its own
		h.serveHealth(seen, r)
		return
	}
	if why := h.foreign(r); why != "" {
		refuse(seen, http.StatusForbidden, why)
		return
	}
	h.mux.ServeHTTP(seen, r)
}

// serveHealth says whether new calls are taken. It tells no secrets: who asks isn't known.
func (h *Handler) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if h.cfg.Lost != nil && h.cfg.Lost() != nil {
		refuse(
			w,
			http.StatusServiceUnavailable,
			"no code can be run now: what runs it can't be reached, as the log says",
		)
		return
	}
	if _, draining := h.calls.count(); draining {
		refuse(w, http.StatusServiceUnavailable, "draining: calls that run are finished, and no others are taken")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

// serveMCP answers the one endpoint of MCP.
func (h *Handler) serveMCP(w http.ResponseWriter, r *http.Request) {
	h.shareWith(w, r)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	principal, ok := h.admit(w, r)
	if !ok {
		return
	}
	w.(*seenWriter).principal = principal
	o := h.sessions.enter(principal, r.Method)
	if o == nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests,
			"too many requests of yours are not answered yet: send this one again when one of them has ended")
		return
	}
	defer h.sessions.leave(principal, r.Method)
	switch {
	case r.Method == http.MethodPost:
		h.post(w, r, principal, o.budget)
	case modern(r.Header.Get(headerVersion)):
		notAllowed(w, http.MethodPost)
	case r.Method == http.MethodGet:
		h.get(w, r, principal)
	case r.Method == http.MethodDelete:
		h.delete(w, r, principal)
	default:
		notAllowed(w, "POST, GET, DELETE")
	}
}

func notAllowed(w http.ResponseWriter, allowed string) {
	w.Header().Set("Allow", allowed)
	refuse(w, http.StatusMethodNotAllowed, "this method is not of the protocol; there are "+allowed)
}

// admit returns to whom a request belongs, or answers it.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request) (principal string, ok bool) {
	if h.cfg.Authenticate == nil {
		return client.Local, true
	}
	principal, err := h.cfg.Authenticate(r)
	if err == nil {
		return principal, true
	}
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		h.cfg.Log.Error("who sends a request could not be found out", "err", err)
		refusal = &Refusal{Status: http.StatusInternalServerError, Message: "who you are could not be found out"}
	}
	if refusal.WWWAuthenticate != "" {
		w.Header().Set("WWW-Authenticate", refusal.WWWAuthenticate)
	}
	refuse(w, refusal.Status, refusal.Message)
	return "", false
}

// barred returns what says why a request that was let in wouldn't be any more: its token was
// revoked or has expired. That this can't be found out now is no reason.
func (h *Handler) barred(r *http.Request, principal string) func() error {
	if h.cfg.Authenticate == nil {
		return nil
	}
	return func() error {
		who, err := h.cfg.Authenticate(r)
		var refusal *Refusal
		switch {
		case err == nil && who != principal:
			return errBarred
		case errors.As(err, &refusal) && refusal.Status == http.StatusUnauthorized:
			return errBarred
		}
		return nil
	}
}
