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
	// Token returns an access token for a server, renewed if need be, or empty where there isn't one.
	// refused is the one that the server has just refused, which is not handed out again; empty for
	// none.
	Token(ctx context.Context, server discovery.Server, refused string) (string, error)
	// Close waits for renewals under way, within a bound of less than CloseTimeout. Token fails
	// from now on.
	Close()
}

// credentials are what a server's configuration has us send with every request, to it alone.
type credentials struct {
	s      *session
	logins Logins // nil: none may be used
	helper *helper
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
	c := &credentials{s: s, helper: &helper{s: s, turn: make(chan struct{}, 1)}}
	// What a user has written down may go out in the clear, but no login.
	if !s.server.OAuth.Off && discovery.Confidential(u) {
		c.logins = s.cfg.Logins
	}
	if name := s.server.BearerTokenEnv; name != "" {
		s.mask.configure(lookupVariable(s.cfg.Environ, name))
	}
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
	for name, value := range c.s.server.Headers {
		set(name, value)
	}
	if name := c.s.server.BearerTokenEnv; name != "" {
		token := lookupVariable(c.s.cfg.Environ, name)
		if token == "" {
			return used, fmt.Errorf("the variable %s is not set, from which its configuration takes the token "+
				"to send", name)
		}
		set("Authorization", "Bearer "+token)
	}
	helped, err := c.helper.headers(ctx, refused.helped)
	if err != nil {
		return used, err
	}
	used.helped = helped.run
	for name, value := range helped.headers {
		c.s.mask.add(value) // of use still, however long ago it was printed
		set(name, value)
	}
	if req.Header.Get("Authorization") != "" || c.logins == nil {
		return used, nil
	}
	used.login, err = c.logins.Token(ctx, c.s.server, refused.login)
	if err != nil {
		return used, errors.New(c.s.mask.text(err.Error()))
	}
	if used.login != "" {
		c.s.mask.add(used.login)
		set("Authorization", "Bearer "+used.login)
	}
	return used, nil
}

// configured reports whether the authorization comes from the configuration, so that no login would
// be used.
func (c *credentials) configured() bool {
	if c.s.server.BearerTokenEnv != "" || c.s.server.OAuth.Off {
		return true
	}
	for _, headers := range []map[string]string{c.s.server.Headers, c.helper.last().headers} {
		for name := range headers {
			if strings.EqualFold(name, "Authorization") {
				return true
			}
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

// helper is the configured program that prints headers, and what it has printed.
type helper struct {
	s    *session
	turn chan struct{} // has room for one: who runs it

	mu      sync.Mutex
	printed printed
}

// printed is what a run of the helper has printed.
type printed struct {
	headers map[string]string
	run     int // 0: it was not run
}

// headers returns what the program has printed since the run whose headers were refused; 0 for
// none. Of several callers one runs it, under its own context, and the others wait for that.
func (h *helper) headers(ctx context.Context, refused int) (printed, error) {
	if last := h.last(); h.s.server.HeadersHelper == "" || last.run > refused {
		return last, nil
	}
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return printed{}, ctx.Err()
	}
	last := h.last()
	if last.run > refused {
		return last, nil
	}
	out, err := h.output(ctx)
	if err != nil {
		return printed{}, fmt.Errorf("the headersHelper of its configuration: %w", err)
	}
	now := printed{run: last.run + 1}
	if json.Unmarshal(out, &now.headers) != nil {
		return printed{}, errors.New("the headersHelper of its configuration: it printed something else than a " +
			"JSON object of strings")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.printed = now
	return now, nil
}

func (h *helper) last() printed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.printed
}

// output runs the program in a process group of its own, with a server's minimal environment and
// its variables, and returns what it printed. What it prints on stderr is not shown: a program that
// handles secrets may well print one.
func (h *helper) output(caller context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(caller, helperTimeout)
	defer cancel()
	cmd := exec.Command("/bin/sh", "-c", h.s.server.HeadersHelper)
	if goruntime.GOOS == "windows" {
		cmd = exec.Command("cmd", "/c", h.s.server.HeadersHelper)
	}
	variables := map[string]string{}
	maps.Copy(variables, h.s.server.Env)
	variables["CLAUDE_CODE_MCP_SERVER_NAME"] = h.s.server.Name
	variables["CLAUDE_CODE_MCP_SERVER_URL"] = h.s.server.URL
	cmd.Env = environ(variables, h.s.cfg.Environ)
	var out limitedBuffer
	cmd.Stdout, cmd.WaitDelay = &out, time.Second // for a process that has left the group
	proc, err := guard.LaunchTracked(cmd, h.s.cfg.Guard)
	if err != nil {
		return nil, err
	}
	select {
	case <-proc.Exited():
	case <-ctx.Done():
	}
	switch err := proc.End(0); {
	case caller.Err() != nil:
		return nil, caller.Err()
	case err != nil:
		return nil, err
	case out.over:
		return nil, fmt.Errorf("it printed more than %d bytes", helperOutput)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it did not end within %v", helperTimeout)
	case proc.State() == nil || !proc.State().Success():
		return nil, fmt.Errorf("it failed (%v); run it by hand to see why", proc.State())
	}
	return bytes.TrimSpace(out.buf.Bytes()), nil
}

// limitedBuffer takes up to helperOutput bytes. It fails for more, which closes the program's
// output.
type limitedBuffer struct {
	buf  bytes.Buffer
	over bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.over = b.buf.Len()+len(p) > helperOutput; b.over {
		return 0, io.ErrShortWrite
	}
	return b.buf.Write(p)
}
