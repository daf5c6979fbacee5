package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauth"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// agreeTimeout is how long a login waits for the user.
const agreeTimeout = 10 * time.Minute

// loginStore is where logins are kept; nil where the system has no place for what lasts.
func loginStore() *oauth.Store {
	dir := stateDir()
	if dir == "" {
		return nil
	}
	return &oauth.Store{Dir: filepath.Join(dir, "logins"), Keyring: oauth.SystemKeyring()}
}

// logins hands out what the user's logins have left.
func logins() upstream.Logins {
	if s := loginSource(); s != nil {
		return s
	}
	return nil
}

func loginSource() *oauth.Source {
	if store := loginStore(); store != nil {
		return oauth.NewSource(oauth.NewClient("mcp-bridge"), store)
	}
	return nil
}

var errNoState = errors.New("there is no place to keep a login; set HOME or XDG_STATE_HOME")

// loginOptions is how a login is made.
type loginOptions struct {
	status, json, noBrowser bool
	scopes                  []string
}

func (a *app) loginCmd() *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use:   "login SERVER | login --status",
		Short: "Log in to a remote server in the browser, or show the logins",
		Args:  cobra.MaximumNArgs(1),

		ValidArgsFunction: completeRemote,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.scopes, err = scopes(o.scopes); err != nil {
				return usageError{err}
			}
			cfg, err := readConfig()
			if err != nil {
				return err
			}
			switch {
			case o.status:
				return a.loginStatus(scan(cfg, cfg.logger(a.stderr, slog.LevelWarn)), args, o.json)
			case o.json:
				return usageError{errors.New("--json goes with --status")}
			case len(args) == 0:
				return usageError{errors.New("name a server, or give --status for the logins there are")}
			}
			srv, err := remoteServer(scan(cfg, cfg.logger(a.stderr, slog.LevelWarn)), args[0])
			if err != nil {
				return err
			}
			return a.login(cmd.Context(), srv, o)
		},
	}
	cmd.Flags().BoolVar(&o.status, "status", false, "show which remote servers somebody has logged in to")
	cmd.Flags().BoolVar(&o.json, "json", false, "with --status: print JSON")
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "open no browser; the address that another one is sent to can be pasted")
	cmd.Flags().StringArrayVar(&o.scopes, "scope", nil, "a `scope` to ask for besides; may be repeated")
	return cmd
}

// scopes are those that are given one by one, or several with spaces or commas between them.
func scopes(given []string) ([]string, error) {
	var all []string
	for _, s := range strings.FieldsFunc(strings.Join(given, " "), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) { // RFC 6749, 3.3
			return nil, fmt.Errorf(`--scope: %q can't be the name of a scope: those have no quotes, no \ and only ASCII`, s)
		}
		all = append(all, s)
	}
	return all, nil
}

func (a *app) logoutCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "logout SERVER",
		Short: "Forget the login to a remote server, and tell its authorization server",
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: completeRemote,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := readConfig()
			if err != nil {
				return err
			}
			srv, err := remoteServer(scan(cfg, cfg.logger(a.stderr, slog.LevelWarn)), args[0])
			if err != nil {
				return err
			}
			source := loginSource()
			if source == nil {
				return errNoState
			}
			if err := source.Logout(cmd.Context(), srv); err != nil {
				return fmt.Errorf("server %q: %w", srv.Name, err)
			}
			fmt.Fprintf(a.stdout, "logged out of %s\n", srv.Name)
			return nil
		},
	}
}

func isRemote(s discovery.Server) bool {
	return s.Transport == discovery.HTTP || s.Transport == discovery.SSE
}

// remoteServer finds a server by its name or its alias.
func remoteServer(c discovery.Catalog, name string) (discovery.Server, error) {
	alias := aliases(c)
	for _, s := range c.Servers {
		if !isCalled(name, s, alias) {
			continue
		}
		if !isRemote(s) {
			return s, usageError{fmt.Errorf("server %q is a program on this machine; there is nothing to log in to", s.Name)}
		}
		return s, nil
	}
	var remote []string
	for _, s := range c.Servers {
		if isRemote(s) {
			remote = append(remote, s.Name)
		}
	}
	return discovery.Server{}, usageError{fmt.Errorf("there is no server %q%s; mcp-bridge servers lists them", name, meant(name, remote))}
}

// login has the user agree, and keeps what that gives.
func (a *app) login(ctx context.Context, srv discovery.Server, o loginOptions) error {
	store := loginStore()
	if store == nil {
		return errNoState
	}
	if srv.OAuth.Off {
		return usageError{fmt.Errorf("server %q: its entry in %s says not to log in", srv.Name, srv.Source)}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, agreeTimeout, fmt.Errorf("nobody agreed within %v", agreeTimeout))
	defer cancel()
	l := oauth.Login{Server: srv, Scopes: o.scopes, Paste: a.stdin}
	open := browser()
	if !o.noBrowser && open != nil {
		l.Open = open
	}
	l.Confirm = a.confirmParties
	l.Show = func(page string, p oauth.Parties) {
		fmt.Fprintln(a.stderr, takingPart(p))
		fmt.Fprintf(a.stderr, "To log in to %s, agree here:\n\n  %s\n\n", srv.Name, page)
		if l.Open == nil {
			fmt.Fprintln(a.stderr, "If that browser is on another machine it will end at an address that it can't open: paste that address here.")
		}
	}
	in, err := keepLogin(ctx, store, l)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "logged in to %s (kept in the %s)\n", srv.Name, kept(in))
	return nil
}

// takingPart says who takes part in a login.
func takingPart(p oauth.Parties) string {
	return fmt.Sprintf("You log in at %s; the code that gives goes to %s (issuer %s), the token to the server.", p.Page, p.Receivers(), p.Issuer)
}

// keepLogin has the user agree and keeps what that gives; in says where.
func keepLogin(ctx context.Context, store *oauth.Store, l oauth.Login) (in string, err error) {
	g, err := oauth.NewClient("mcp-bridge").Login(ctx, l)
	if err != nil {
		return "", fmt.Errorf("logging in to %q: %w", l.Server.Name, err)
	}
	unlock, err := store.Lock(ctx, l.Server)
	if err != nil {
		return "", err
	}
	defer unlock()
	return store.Put(l.Server, g)
}

// loginByPage is a login in the course of a call (bridge.Login). One whose parties are of several origins fails: that takes a question
// of its own, which the command asks.
func loginByPage(ctx context.Context, srv discovery.Server, scope string, agree func(ctx context.Context, page, about string) error) error {
	store := loginStore()
	if store == nil {
		return errNoState
	}
	more, err := scopes([]string{scope})
	if err != nil || srv.OAuth.Off {
		return errors.Join(err, errNotByPage)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel(nil) // the answer to the page may come before the client's
	_, err = keepLogin(ctx, store, oauth.Login{Server: srv, Scopes: more, Show: func(page string, p oauth.Parties) {
		asking.Go(func() {
			if err := agree(ctx, page, takingPart(p)); err != nil {
				cancel(err)
			}
		})
	}})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

var errNotByPage = errors.New("this login can't be made by a page alone")

var errUnanswered = errors.New("there was no answer; run it at a terminal")

// confirmParties asks on the terminal whether the parties of a login belong together. What is typed ahead stays with stdin.
func (a *app) confirmParties(ctx context.Context, p oauth.Parties) (bool, error) {
	fmt.Fprintf(a.stderr, "You would log in at %s, but the code and tokens that gives would go to %s (issuer %s).\n"+
		"Whoever is there could act as you at the first. Say yes only if you know that they belong together.\nGo on? [y/N] ", p.Page, p.Receivers(), p.Issuer)
	said := make(chan string, 1)
	go func() { said <- readAnswer(a.stdin) }() // a read of a terminal can't be ended; it ends with the process
	select {
	case answer := <-said:
		if answer == "" {
			return false, errUnanswered
		}
		return isYes(answer), nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// isYes reports whether what was typed is y or yes.
func isYes(answer string) bool {
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer)))
}

// readAnswer reads one line and nothing beyond it; empty where there is none.
func readAnswer(r io.Reader) string {
	const limit = 64 // bytes; a longer one is neither yes nor no
	var line []byte
	for b := make([]byte, 1); len(line) < limit; {
		n, err := r.Read(b)
		if line = append(line, b[:n]...); err != nil || n > 0 && b[0] == '\n' {
			break
		}
	}
	return string(line)
}

func kept(in string) string {
	if in == oauth.InFile {
		return "file of logins, which only you can read"
	}
	return in
}
