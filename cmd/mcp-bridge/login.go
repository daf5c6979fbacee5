package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/secrets"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauth"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// agreeTimeout is how long a login waits for the user.
const agreeTimeout = 10 * time.Minute

// loginStore returns where logins are kept, or nil.
func loginStore() *oauth.Store { return (*oauth.Store)(keptIn("logins")) }

// loginSource returns what makes logins and hands out their tokens.
func loginSource() (*oauth.Source, error) {
	store := loginStore()
	if store == nil {
		return nil, settings.ErrNoPlace
	}
	return oauth.NewSource(store), nil
}

// logins returns what upstream.Config.Logins is.
func logins() upstream.Logins {
	s, err := loginSource()
	if err != nil {
		return nil
	}
	return s
}

// loginByPage implements bridge.Config.Login.
func loginByPage(ctx context.Context, srv discovery.Server, scope string,
	agree func(ctx context.Context, page, about string) error) error {
	source, err := loginSource()
	if err != nil {
		return err
	}
	defer source.Close()
	return source.LoginByPage(ctx, srv, scope, agree)
}

// loginOptions is how a login is made.
type loginOptions struct {
	status, json, noBrowser bool
	scopes                  []string
}

// loginCommands are what the user does with logins.
type loginCommands struct {
	io *terminal.Streams
	loginOptions
}

func loginCmd(a *app) *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use:   "login SERVER | login --status",
		Short: "Log in to a remote server in the browser, or show the logins",
		Args:  cobra.MaximumNArgs(1),

		ValidArgsFunction: completeRemote,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.scopes, err = oauth.Scopes(o.scopes...); err != nil {
				return exit.Usage(fmt.Errorf("--scope: %w", err))
			}
			switch {
			case o.status:
				return loginCommands{a.io, o}.showStatus(args)
			case o.json:
				return exit.Usage(errors.New("--json goes with --status"))
			case len(args) == 0:
				return exit.Usage(errors.New("name a server, or give --status for the logins there are"))
			}
			srv, err := remoteServer(a.io.Err, args[0])
			if err != nil {
				return err
			}
			return loginCommands{a.io, o}.login(cmd.Context(), srv)
		},
	}
	cmd.Flags().BoolVar(&o.status, "status", false, "show which remote servers you are logged in to")
	cmd.Flags().BoolVar(&o.json, "json", false, "with --status: print JSON")
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false,
		"open no browser; the address that another one is sent to can be pasted")
	cmd.Flags().StringArrayVar(&o.scopes, "scope", nil, "a `scope` to ask for besides; may be repeated")
	return cmd
}

func logoutCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "logout SERVER",
		Short: "Forget the login to a remote server, and tell its authorization server",
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: completeRemote,
		RunE: func(cmd *cobra.Command, args []string) error {
			srv, err := remoteServer(a.io.Err, args[0])
			if err != nil {
				return err
			}
			source, err := loginSource()
			if err != nil {
				return err
			}
			if err := source.Logout(cmd.Context(), srv); err != nil {
				return fmt.Errorf("server %q: %w", srv.Name, err)
			}
			fmt.Fprintf(a.io.Out, "logged out of %s\n", srv.Name)
			return nil
		},
	}
}

func isRemote(s discovery.Server) bool {
	return s.Transport == discovery.HTTP || s.Transport == discovery.SSE
}

// loginServers returns the configured servers that a login may be for.
func loginServers(c discovery.Catalog) []discovery.Server {
	return slices.DeleteFunc(c.Servers, func(s discovery.Server) bool { return !isRemote(s) })
}

// remoteServer finds a configured server by its name or its alias. It logs to stderr.
func remoteServer(stderr io.Writer, name string) (discovery.Server, error) {
	cfg, err := settings.Read()
	if err != nil {
		return discovery.Server{}, err
	}
	c, err := only(scan(cfg, cfg.Logger(stderr, slog.LevelWarn)), []string{name})
	switch {
	case err != nil:
		return discovery.Server{}, err
	case len(c.Servers) == 0:
		p := c.Problems[0]
		return discovery.Server{}, exit.Usage(fmt.Errorf("server %q is not used: %s", name, p.Reason))
	case !isRemote(c.Servers[0]):
		return discovery.Server{}, exit.Usage(fmt.Errorf(
			"server %q is a program on this machine; there is nothing to log in to", c.Servers[0].Name))
	}
	return c.Servers[0], nil
}

// login asks the user to agree, and keeps what that gives.
func (c loginCommands) login(ctx context.Context, srv discovery.Server) error {
	source, err := loginSource()
	if err != nil {
		return err
	}
	late := fmt.Errorf("you did not agree within %v", agreeTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, agreeTimeout, late)
	defer cancel()
	l := oauth.Login{Server: srv, Scopes: c.scopes, Paste: c.io.In, Confirm: c.confirm}
	if !c.noBrowser {
		l.Open = oauth.Browser()
	}
	l.Show = func(page string, p oauth.Parties) {
		fmt.Fprintf(c.io.Err, "%s\nTo log in to %s, agree here:\n\n  %s\n\n", p, srv.Name, page)
		if l.Open == nil {
			c.io.Say("If that browser is on another machine it will end at an address that it can't open: paste " +
				"that address here.")
		}
	}
	in, err := source.Login(ctx, l)
	if errors.Is(err, oauth.ErrOff) {
		return exit.Usage(fmt.Errorf("server %q: its entry in %s says not to log in", srv.Name, srv.Source))
	}
	if err != nil {
		return err
	}
	if in == secrets.InFile {
		in = "file of logins, which only you can read"
	}
	fmt.Fprintf(c.io.Out, "logged in to %s (kept in the %s)\n", srv.Name, in)
	return nil
}

var errUnanswered = errors.New("there was no answer; run it at a terminal")

// confirm asks on the terminal what a login has to ask. What is typed ahead stays with
// stdin.
func (c loginCommands) confirm(ctx context.Context, p oauth.Parties) (bool, error) {
	yes, answered, err := c.io.Ask(ctx, p.Question()+"\nGo on? [y/N] ")
	if err == nil && !answered {
		err = errUnanswered
	}
	return yes, err
}

// loginJSON is what a program is told of a login: nothing of the tokens.
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

// showStatus shows the login to one server or to all.
func (c loginCommands) showStatus(only []string) error {
	store := loginStore()
	if store == nil {
		return settings.ErrNoPlace
	}
	var servers []discovery.Server
	if len(only) == 1 {
		srv, err := remoteServer(c.io.Err, only[0])
		if err != nil {
			return err
		}
		servers = []discovery.Server{srv}
	} else {
		cfg, err := settings.Read()
		if err != nil {
			return err
		}
		servers = loginServers(scan(cfg, cfg.Logger(c.io.Err, slog.LevelWarn)))
	}
	all := []loginJSON{}
	rows := [][]string{{"SERVER", "LOGIN", "KEPT IN", "SCOPE"}}
	for _, srv := range servers {
		l := statusOf(store, srv)
		all = append(all, l)
		rows = append(rows, []string{l.Server, l.text(), cmp.Or(l.In, "-"), cmp.Or(l.Scope, "-")})
	}
	return c.io.List(c.json, all, rows, "there are no remote servers; mcp-bridge servers says what was found")
}

func statusOf(store *oauth.Store, srv discovery.Server) loginJSON {
	l := loginJSON{Server: srv.Name, ByHeader: authorizes(srv)}
	g, in, err := store.Get(srv)
	switch {
	case errors.Is(err, oauth.ErrNone):
	case err != nil:
		l.Problem = err.Error()
	default:
		l.LoggedIn, l.In, l.Scope, l.Renews = true, in, g.Scope, g.RefreshToken != ""
		if !g.Expires.IsZero() {
			l.Expires = &g.Expires
		}
	}
	return l
}

// authorizes reports whether a server's entry has a key or a token sent in a header, or a command
// that prints headers run.
func authorizes(s discovery.Server) bool {
	for name := range s.Headers {
		name = strings.ToLower(name)
		if slices.ContainsFunc([]string{"auth", "key", "token"},
			func(part string) bool { return strings.Contains(name, part) }) {
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
