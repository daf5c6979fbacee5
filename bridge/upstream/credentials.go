package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

// Logins hands out the tokens that the user's logins have left. Its methods may be called
// concurrently.
type Logins interface {
	// Token returns an access token for a server, renewed if need be, or empty where there is none.
	// refused is the one that the server has just refused, which is not handed out again; empty for
	// none.
	Token(ctx context.Context, server discovery.Server, refused string) (string, error)
	// Close waits for renewals under way, within a bound of less than CloseTimeout. Token fails
	// from now on.
	Close()
}

// credentials are what a server's configuration has us send with every request, to it alone.
type credentials struct {
	server  discovery.Server
	mask    *mask
	environ []string
	logins  Logins // nil: none may be used
	helper  *helper
}

// sent is which of what can be renewed an attempt was sent with.
type sent struct {
	login  string // the token of one; empty for none
	helped int    // the run of the helper that printed its headers; 0 for none
}

// newer reports whether an attempt is sent with something else than the one before.
func (s sent) newer(before sent) bool {
	return s.helped != before.helped || s.login != before.login && s.login != ""
}

func newCredentials(s *session, u *url.URL) *credentials {
	c := &credentials{server: s.server, mask: s.mask, environ: s.cfg.Environ, logins: s.cfg.Logins}
	if c.environ == nil {
		c.environ = os.Environ()
	}
	c.helper = newHelper(c.server, c.environ, s.cfg.Guard)
	// What a user has written down may go out in the clear, but no login.
	if s.server.OAuth.Off || !discovery.Confidential(u) {
		c.logins = nil
	}
	for name, value := range s.server.Headers {
		if secretName.MatchString(name) || !plainValue.MatchString(value) {
			c.mask.configure(value)
		}
	}
	if c.server.BearerTokenEnv != "" {
		c.mask.configure(lookupVariable(c.environ, c.server.BearerTokenEnv))
	}
	c.mask.configure(hidden(u.String())...)
	return c
}

// reserved are headers of the protocol, which no configuration may set.
var reserved = []string{"Accept", "Connection", "Content-Length", "Content-Type", "Last-Event-Id",
	"Mcp-Protocol-Version", "Mcp-Session-Id", "Transfer-Encoding"}

// apply sets the headers of a request, and returns what it took for them. It doesn't take again
// what the server has just refused, if it can get something else. What the configuration says goes
// before a login.
func (c *credentials) apply(ctx context.Context, req *http.Request, refused sent) (used sent, err error) {
	set := func(name, value string) {
		switch name = textproto.CanonicalMIMEHeaderKey(name); {
		case slices.Contains(reserved, name):
		case name == "Host":
			req.Host = value
		default:
			req.Header.Set(name, value)
		}
	}
	for name, value := range c.server.Headers {
		set(name, value)
	}
	if c.server.BearerTokenEnv != "" {
		token := lookupVariable(c.environ, c.server.BearerTokenEnv)
		if token == "" {
			return used, fmt.Errorf("the variable %s is not set, from which its configuration takes the token "+
				"to send", c.server.BearerTokenEnv)
		}
		set("Authorization", "Bearer "+token)
	}
	helped, err := c.helper.headers(ctx, refused.helped)
	if err != nil {
		return used, err
	}
	used.helped = helped.run
	for name, value := range helped.headers {
		c.mask.add(value) // of use still, however long ago it was printed
		set(name, value)
	}
	if req.Header.Get("Authorization") != "" || c.logins == nil {
		return used, nil
	}
	used.login, err = c.logins.Token(ctx, c.server, refused.login)
	if err != nil {
		return used, errors.New(c.mask.text(err.Error()))
	}
	if used.login != "" {
		c.mask.add(used.login)
		set("Authorization", "Bearer "+used.login)
	}
	return used, nil
}

// configured reports whether the authorization comes from the configuration, so that no login would
// be used.
func (c *credentials) configured() bool {
	if c.server.BearerTokenEnv != "" || c.server.OAuth.Off {
		return true
	}
	for name := range c.server.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	for name := range c.helper.last().headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// lookupVariable returns the value of a variable in a list like os.Environ; the last one counts.
func lookupVariable(environ []string, name string) (value string) {
	for _, kv := range environ {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			value = v
		}
	}
	return value
}

const (
	helperTimeout = 10 * time.Second // for a program that prints headers
	helperOutput  = 64 << 10         // bytes of what it prints
)

// helper is the configured program that prints headers, if there is one, and what it has printed.
// Of several callers who want something else than it has printed one runs it, under its own
// context, and the others take what comes of that, or wait until their contexts end.
type helper struct {
	run  func(context.Context) (map[string]string, error) // nil: no program is configured
	turn chan struct{}                                    // has room for one: who runs it

	mu  sync.Mutex
	now helped
}

// helped is what has come of a helper.
type helped struct {
	headers map[string]string // that it has printed
	run     int               // in which of its runs; 0 for none
	runs    int               // that have ended, not counting those that a caller gave up
	err     error             // of the last one
}

func newHelper(srv discovery.Server, environment []string, groups Guard) *helper {
	h := &helper{turn: make(chan struct{}, 1)}
	if srv.HeadersHelper == "" {
		return h
	}
	h.run = func(ctx context.Context) (headers map[string]string, err error) {
		out, err := runHelper(ctx, srv, environment, groups)
		if err != nil {
			return nil, fmt.Errorf("the headersHelper of its configuration: %w", err)
		}
		if json.Unmarshal(out, &headers) != nil {
			return nil, errors.New("the headersHelper of its configuration: it printed something else than a " +
				"JSON object of strings")
		}
		return headers, nil
	}
	return h
}

// headers are what the program has printed since the run whose headers were refused; 0 for none. It
// is run for them if need be: once for all who wait, also where it fails.
func (h *helper) headers(ctx context.Context, refused int) (helped, error) {
	before := h.last()
	if h.run == nil || before.run > refused {
		return before, nil
	}
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return before, ctx.Err()
	}
	if now := h.last(); now.runs > before.runs {
		return now, now.err
	}
	headers, err := h.run(ctx)
	if err != nil && ctx.Err() != nil { // which says nothing to those who wait
		return before, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.runs++
	if h.now.err = err; err == nil {
		h.now.headers, h.now.run = headers, h.now.runs
	}
	return h.now, err
}

// last is what has come of the runs so far.
func (h *helper) last() helped {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// runHelper runs the program in a process group of its own, with a server's minimal environment and
// its variables. What it prints on stderr is not shown: a program that handles secrets may well
// print one.
func runHelper(
	caller context.Context, srv discovery.Server, environment []string, groups Guard,
) ([]byte, error) {
	ctx, cancel := context.WithTimeout(caller, helperTimeout)
	defer cancel()
	cmd := exec.Command("/bin/sh", "-c", srv.HeadersHelper)
	if goruntime.GOOS == "windows" {
		cmd = exec.Command("cmd", "/c", srv.HeadersHelper)
	}
	variables := map[string]string{}
	maps.Copy(variables, srv.Env)
	variables["CLAUDE_CODE_MCP_SERVER_NAME"], variables["CLAUDE_CODE_MCP_SERVER_URL"] = srv.Name, srv.URL
	cmd.Env = environ(variables, environment)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening a pipe: %w", err)
	}
	defer r.Close()
	cmd.Stdout = w
	proc, err := guard.LaunchTracked(cmd, groups)
	_ = w.Close()
	if err != nil {
		return nil, err
	}
	read := make(chan []byte, 1)
	go func() { // ends with the pipe, at the latest when r is closed
		out, _ := io.ReadAll(io.LimitReader(r, helperOutput+1))
		read <- out
	}()
	var out []byte
	select {
	case out = <-read:
		if len(out) <= helperOutput { // else it would wait for us to read on
			select {
			case <-proc.Exited():
			case <-ctx.Done():
			}
		}
		err = proc.End(0)
	case <-ctx.Done():
		err = proc.End(0)
		_ = r.Close()
		<-read
	}
	switch {
	case caller.Err() != nil:
		return nil, caller.Err()
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it did not end within %v", helperTimeout)
	case err != nil:
		return nil, err
	case len(out) > helperOutput:
		return nil, fmt.Errorf("it printed more than %d bytes", helperOutput)
	case proc.State() == nil || !proc.State().Success():
		return nil, fmt.Errorf("it failed (%v); run it by hand to see why", proc.State())
	}
	return bytes.TrimSpace(out), nil
}
