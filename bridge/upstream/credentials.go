package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery"
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
	logins  Logins // nil: none may be used
	helper  *helper
}

// sent is which of what can be renewed an attempt was sent with.
type sent struct {
	login  string // the token of one; empty for none
	helped int    // the run of the helper that printed its headers; 0 for none
}

func newCredentials(s *session, u *url.URL) *credentials {
	c := &credentials{server: s.server, mask: s.mask, environ: s.cfg.Environ, logins: s.cfg.Logins}
	if c.environ == nil {
		c.environ = os.Environ()
	}
	c.helper = newHelper(c.server, c.environ, s.cfg.Guard)
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

// apply sets the headers of a request, and says what it took for them. refused is what the server has just refused, in whose place there
// is something else now where that can be had. What the configuration says goes before a login.
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
			return used, fmt.Errorf("the variable %s is not set, from which its configuration takes the token to send", c.server.BearerTokenEnv)
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
	for name := range c.helper.last().headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
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
