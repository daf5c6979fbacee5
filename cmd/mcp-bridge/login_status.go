package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauth"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// loginJSON is what may be told of a login: nothing of the tokens.
type loginJSON struct {
	Server   string     `json:"server"`
	LoggedIn bool       `json:"loggedIn"`
	ByHeader bool       `json:"byHeader,omitempty"` // the entry authorizes by itself
	In       string     `json:"in,omitempty"`
	Scope    string     `json:"scope,omitempty"`
	Expires  *time.Time `json:"expires,omitempty"` // of the access token
	Renews   bool       `json:"renews"`            // by itself, when it ends
	Problem  string     `json:"problem,omitempty"`
}

func (a *app) loginStatus(c discovery.Catalog, only []string, asJSON bool) error {
	store := loginStore()
	if store == nil {
		return errNoState
	}
	servers := c.Servers
	if len(only) == 1 {
		srv, err := remoteServer(c, only[0])
		if err != nil {
			return err
		}
		servers = []discovery.Server{srv}
	}
	all := []loginJSON{}
	for _, srv := range servers {
		if isRemote(srv) {
			all = append(all, statusOf(store, srv))
		}
	}
	if asJSON {
		return printJSON(a.stdout, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(a.stdout, "there are no remote servers; mcp-bridge servers says what was found")
		return nil
	}
	g := grid{rows: [][]string{{"SERVER", "LOGIN", "KEPT IN", "SCOPE"}}}
	for _, l := range all {
		g.rows = append(g.rows, []string{l.Server, l.text(), or(l.In, "-"), or(l.Scope, "-")})
	}
	screenOf(a.stdout).table(g)
	return nil
}

func statusOf(store *oauth.Store, srv discovery.Server) loginJSON {
	l := loginJSON{Server: srv.Name, ByHeader: authorizes(srv)}
	g, in, err := store.Get(srv)
	if errors.Is(err, oauth.ErrNone) {
		return l
	}
	if err != nil {
		l.Problem = err.Error()
		return l
	}
	l.LoggedIn, l.In, l.Scope, l.Renews = true, in, g.Scope, g.RefreshToken != ""
	if !g.Expires.IsZero() {
		l.Expires = &g.Expires
	}
	return l
}

// authorizes reports whether a server's entry has a key or a token sent in a header, or a command
// that prints headers run.
func authorizes(s discovery.Server) bool {
	for name := range s.Headers {
		if name = strings.ToLower(name); strings.Contains(name, "auth") || strings.Contains(name, "key") || strings.Contains(name, "token") {
			return true
		}
	}
	return s.BearerTokenEnv != "" || s.HeadersHelper != ""
}

func (l loginJSON) text() string {
	switch {
	case l.Problem != "":
		return l.Problem
	case !l.LoggedIn && l.ByHeader:
		return "by its header"
	case !l.LoggedIn:
		return "none"
	case l.Renews:
		return "yes, renews itself"
	case l.Expires == nil:
		return "yes"
	case time.Now().After(*l.Expires):
		return "ended " + l.Expires.Local().Format(time.DateTime)
	}
	return "until " + l.Expires.Local().Format(time.DateTime)
}

func or(v, otherwise string) string {
	if v == "" {
		return otherwise
	}
	return v
}
