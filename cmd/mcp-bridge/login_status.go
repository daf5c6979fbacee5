package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauth"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// loginJSON is what may be told of a login: nothing of the tokens.
type loginJSON struct {
	Server   string     `json:"server"`
	LoggedIn bool       `json:"loggedIn"`
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
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return e.Encode(all)
	}
	if len(all) == 0 {
		fmt.Fprintln(a.stdout, "there are no remote servers; mcp-bridge servers says what was found")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tLOGIN\tKEPT IN\tSCOPE")
	for _, l := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Server, l.text(), or(l.In, "-"), or(l.Scope, "-"))
	}
	return w.Flush()
}

func statusOf(store *oauth.Store, srv discovery.Server) loginJSON {
	l := loginJSON{Server: srv.Name}
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

func (l loginJSON) text() string {
	switch {
	case l.Problem != "":
		return l.Problem
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
