package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

const (
	helperTimeout = 10 * time.Second // for a program that prints headers
	helperOutput  = 64 << 10         // bytes of what it prints
)

// Logins hands out the tokens that the user's logins have left. Its methods may be called concurrently.
type Logins interface {
	// Token is an access token for a server, renewed if need be, or empty where there is none. refused is the one that the server
	// has just refused, which is not handed out again; empty for none.
	Token(ctx context.Context, server discovery.Server, refused string) (string, error)
	// Close waits for renewals under way, within a bound of less than CloseTimeout. Token fails from now on.
	Close()
}

// credentials are what a server's configuration has us send with every request, and to nobody else.
type credentials struct {
	server  discovery.Server
	mask    *mask
	environ []string
	groups  Guard
	logins  Logins // nil: none may be used

	mu     sync.Mutex // one helper at a time
	helped map[string]string
	ran    bool
}

func newCredentials(s *session, u *url.URL) *credentials {
	c := &credentials{server: s.server, mask: s.mask, environ: s.cfg.Environ, groups: s.cfg.Guard, logins: s.cfg.Logins}
	if c.environ == nil {
		c.environ = os.Environ()
	}
	if s.server.OAuth.Off || !discovery.Confidential(u) { // what a user has written down may go out in the clear, but no login
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
var reserved = []string{"Accept", "Connection", "Content-Length", "Content-Type", "Last-Event-Id", "Mcp-Protocol-Version", "Mcp-Session-Id", "Transfer-Encoding"}

// apply sets the headers of a request, and returns the token of a login among them, empty for none. What the configuration says
// goes before a login.
func (c *credentials) apply(ctx context.Context, req *http.Request, refused string) (login string, err error) {
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
			return "", fmt.Errorf("the variable %s is not set, from which its configuration takes the token to send", c.server.BearerTokenEnv)
		}
		set("Authorization", "Bearer "+token)
	}
	helped, err := c.fromHelper(ctx, false)
	if err != nil {
		return "", err
	}
	for name, value := range helped {
		c.mask.add(value) // of use still, however long ago it was printed
		set(name, value)
	}
	if req.Header.Get("Authorization") != "" || c.logins == nil {
		return "", nil
	}
	token, err := c.logins.Token(ctx, c.server, refused)
	if err != nil {
		return "", errors.New(c.mask.text(err.Error()))
	}
	if token != "" {
		c.mask.add(token)
		set("Authorization", "Bearer "+token)
	}
	return token, nil
}

// configured says whether the authorization comes from the configuration, so that no login would be used.
func (c *credentials) configured() bool {
	if c.server.BearerTokenEnv != "" || c.server.OAuth.Off {
		return true
	}
	for name := range c.server.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.helped {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// renew is asked after a refusal (401) whether there is something else to send: what the helper prints now.
func (c *credentials) renew(ctx context.Context) (bool, error) {
	if c.server.HeadersHelper == "" {
		return false, nil
	}
	_, err := c.fromHelper(ctx, true)
	return err == nil, err
}

// fromHelper is the headers that the configured program prints. It is run once for a session, and again when its headers were refused.
func (c *credentials) fromHelper(ctx context.Context, again bool) (map[string]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.HeadersHelper == "" || c.ran && !again {
		return c.helped, nil
	}
	out, err := c.runHelper(ctx)
	if err != nil {
		return nil, fmt.Errorf("the headersHelper of its configuration: %w", err)
	}
	var headers map[string]string
	if json.Unmarshal(out, &headers) != nil {
		return nil, errors.New("the headersHelper of its configuration: it printed something else than a JSON object of strings")
	}
	c.helped, c.ran = headers, true
	return headers, nil
}

// runHelper runs the program in a process group of its own, with a server's minimal environment. What it prints on stderr is
// not shown: a program that handles secrets may well print one.
func (c *credentials) runHelper(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	cmd := exec.Command("/bin/sh", "-c", c.server.HeadersHelper)
	if goruntime.GOOS == "windows" {
		cmd = exec.Command("cmd", "/c", c.server.HeadersHelper)
	}
	cmd.Env = environ(map[string]string{"CLAUDE_CODE_MCP_SERVER_NAME": c.server.Name, "CLAUDE_CODE_MCP_SERVER_URL": c.server.URL}, c.environ)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening a pipe: %w", err)
	}
	defer r.Close()
	cmd.Stdout = w
	proc, err := guard.LaunchTracked(cmd, c.groups)
	_ = w.Close()
	if err != nil {
		return nil, err
	}
	read := make(chan []byte, 1)
	go func() { // ends with the pipe: End leaves nobody who holds its other end, and r is closed
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

// lookupVariable is the value of a variable in a list like os.Environ; the last one counts.
func lookupVariable(environ []string, name string) (value string) {
	for _, kv := range environ {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			value = v
		}
	}
	return value
}

// plainWord needs no quotes in any shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.@/:-]+$`)

// quoteName is a word as a person would type it.
func quoteName(name string) string {
	if plainWord.MatchString(name) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
