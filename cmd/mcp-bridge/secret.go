package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/secrets"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	maxSecret  = 64 << 10 // bytes
	leastShown = 4        // characters of one that is hidden in what servers write
)

// keptIn returns where secrets of a kind are kept; nil if the system has no place for what lasts.
func keptIn(kind string) *secrets.Store {
	dir := settings.StateDir()
	if dir == "" {
		return nil
	}
	return &secrets.Store{Dir: filepath.Join(dir, kind), Keyring: secrets.SystemKeyring()}
}

// secretStore returns where the user's secrets are kept, or nil.
func secretStore() *secrets.Store { return keptIn("secrets") }

// environment returns what a scan depends on beside the files.
func environment(cfg settings.Settings) discovery.Env {
	env := discovery.Current(cfg.Config)
	if store := secretStore(); store != nil {
		env.SecretFile = func(name string) string { return store.File(secrets.Account(name)) }
	}
	return env
}

// secretValue implements upstream.Config.Secret.
func secretValue(name string) (string, error) {
	store := secretStore()
	if store == nil {
		return "", settings.ErrNoPlace
	}
	value, _, err := store.Get(secrets.Account(name))
	if errors.Is(err, secrets.ErrNone) {
		err = fmt.Errorf("%w; %s", err, discovery.SetSecret(name))
	}
	return value, err
}

// secretCommands are what the user does with secrets.
type secretCommands struct {
	io    *terminal.Streams
	store *secrets.Store
}

// withSecrets does something with the user's secrets.
func withSecrets(io *terminal.Streams, do func(secretCommands) error) error {
	store := secretStore()
	if store == nil {
		return settings.ErrNoPlace
	}
	return do(secretCommands{io, store})
}

func secretCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Keep secrets for servers of the bridge's own files, which name them as ${secret:NAME}",
		Long: "Keep secrets in the keyring, or without one in files that only you can read.\n" +
			"Files in ~/.config/mcp/servers ask for one by ${secret:NAME}: docs/secrets.md.",
	}
	var lines bool
	set := &cobra.Command{
		Use:   "set NAME",
		Short: "Ask for a secret at the terminal, or read it from standard input, and keep it",
		Args:  cobra.ExactArgs(1), ValidArgsFunction: completeSecrets,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSecrets(a.io, func(c secretCommands) error { return c.set(cmd.Context(), args[0], lines) })
		},
	}
	set.Flags().BoolVar(&lines, "multiline", false, "take all of standard input, not one line")
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "Show which secrets there are, where they are kept, and who asks for them",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return withSecrets(a.io, func(c secretCommands) error { return c.list(asJSON) })
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Forget a secret",
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeSecrets,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSecrets(a.io, func(c secretCommands) error { return c.remove(cmd.Context(), args[0]) })
		},
	}
	cmd.AddCommand(set, list, remove)
	return cmd
}

// completeSecrets completes the name of a secret.
func completeSecrets(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if store := secretStore(); store != nil && len(args) == 0 {
		for _, e := range store.List() {
			names = append(names, e.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (c secretCommands) set(ctx context.Context, name string, lines bool) error {
	if !discovery.IsSecretName(name) {
		return exit.Usage(fmt.Errorf("%q can't name a secret: a name is letters, digits and . _ -, at most 64, "+
			"and begins with none of the last two", name))
	}
	if lines && !c.io.AtTerminal() {
		all, err := io.ReadAll(io.LimitReader(c.io.In, maxSecret+2))
		value := strings.TrimSuffix(strings.TrimSuffix(string(all), "\n"), "\r")
		if err = checkSecret(value, err); err != nil {
			return err
		}
		return c.keep(ctx, name, value)
	}
	value, err := c.readSecret(ctx, "Secret "+name)
	if err != nil {
		return err
	}
	if !c.io.AtTerminal() {
		if more, _ := c.readLine(); more != "" {
			return exit.Usage(errors.New("standard input has more than one line; --multiline takes all of it"))
		}
	}
	return c.keep(ctx, name, value)
}

// keepAsked sets a secret that a moved server asks for: to what its host's file has in plain text,
// or to what the user is asked for, once for all servers with the same input. One that is set to
// something else stays, and is an error. It reports whether it has set it.
func (c secretCommands) keepAsked(ctx context.Context, s discovery.Asked) (set bool, err error) {
	is, _, err := c.store.Get(secrets.Account(s.Name))
	switch {
	case err == nil && (s.Value() == "" || is == s.Value()):
		return false, nil
	case err == nil:
		return false, fmt.Errorf("the secret %s is set already, to something else; remove it first, or move "+
			"the server by hand: mcp-bridge secret remove %s", s.Name, s.Name)
	case !errors.Is(err, secrets.ErrNone):
		return false, fmt.Errorf("the secret %s: %w", s.Name, err)
	}
	value := s.Value()
	if value == "" {
		if value, err = c.readSecret(ctx, cmp.Or(s.About, "Secret "+s.Name)); err != nil {
			return false, err
		}
	}
	err = c.keep(ctx, s.Name, value)
	return err == nil, err
}

// readSecret asks for a secret at the terminal, where it isn't shown, or else reads a line of
// standard input. The end of the line doesn't count.
func (c secretCommands) readSecret(ctx context.Context, about string) (value string, err error) {
	if c.io.AtTerminal() {
		fmt.Fprint(c.io.Err, about+": ")
		value, err = terminal.ReadSecret(ctx, c.io.In.(*os.File))
		c.io.Say("")
	} else {
		value, err = c.readLine()
	}
	return value, checkSecret(value, err)
}

// checkSecret returns why what was read can't be kept as a secret.
func checkSecret(value string, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("reading the secret: %w", err)
	case value == "":
		return exit.Usage(errors.New("nothing was given; type the secret, or send it to standard input"))
	case len(value) > maxSecret:
		return exit.Usage(fmt.Errorf("it is longer than %d bytes", maxSecret))
	case strings.ContainsRune(value, 0) || !utf8.ValidString(value):
		return exit.Usage(errors.New("it isn't text: it has a NUL character in it, or bytes that are no UTF-8"))
	}
	return nil
}

// readLine reads a line of standard input that may be a secret, and nothing behind it. It stops
// where a secret would be too long.
func (c secretCommands) readLine() (string, error) {
	var line []byte
	for char := []byte{0}; len(line) <= maxSecret+1; { // and for \r
		n, err := c.io.In.Read(char)
		if n > 0 && char[0] == '\n' || errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", err
		}
		line = append(line, char[:n]...)
	}
	return strings.TrimSuffix(string(line), "\r"), nil
}

func (c secretCommands) keep(ctx context.Context, name, value string) error {
	account := secrets.Account(name)
	unlock, err := c.store.Lock(ctx, account)
	if err != nil {
		return fmt.Errorf("keeping the secret %s: %w", name, err)
	}
	defer unlock()
	in, err := c.store.Put(account, name, value)
	if err != nil {
		return fmt.Errorf("keeping the secret %s: %w", name, err)
	}
	where := "kept in the keyring"
	if in == secrets.InFile {
		where = "kept in a file that only you can read, since no keyring takes it: " + c.store.File(account)
		if c.store.Keyring != nil {
			where += "; if the keyring is locked, unlock it, and set the secret again"
		}
	}
	fmt.Fprintf(c.io.Out, "set %s (%s)\n", name, where)
	if utf8.RuneCountInString(value) < leastShown {
		c.io.Say(fmt.Sprintf("it is shorter than %d characters: what servers write is shown with it", leastShown))
	}
	return nil
}

// secretJSON is what a program is told of a secret.
type secretJSON struct {
	Name    string   `json:"name"`
	In      string   `json:"in"`
	Servers []string `json:"servers"` // that are given it
}

func (c secretCommands) list(asJSON bool) error {
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	found := scan(cfg, cfg.Logger(c.io.Err, slog.LevelWarn))
	all := []secretJSON{}
	rows := [][]string{{"SECRET", "KEPT IN", "GIVEN TO"}}
	for _, e := range c.store.List() {
		s := secretJSON{e.Name, e.In, asking(found, e.Name)}
		all = append(all, s)
		rows = append(rows, []string{e.Name, e.In, cmp.Or(strings.Join(s.Servers, ", "), "-")})
	}
	return c.io.List(asJSON, all, rows, "there are no secrets; to set one: mcp-bridge secret set NAME")
}

// asking returns the servers that are given a secret.
func asking(c discovery.Catalog, name string) []string {
	servers := []string{}
	for _, s := range c.Servers {
		if slices.Contains(s.Given(), name) {
			servers = append(servers, s.Name)
		}
	}
	return servers
}

func (c secretCommands) remove(ctx context.Context, name string) error {
	account := secrets.Account(name)
	unlock, err := c.store.Lock(ctx, account)
	if err != nil {
		return fmt.Errorf("removing the secret %s: %w", name, err)
	}
	defer unlock()
	switch err := c.store.Delete(account); {
	case errors.Is(err, secrets.ErrNone):
		return exit.Usage(fmt.Errorf("there is no secret %q; mcp-bridge secret list shows them", name))
	case err != nil:
		return fmt.Errorf("removing the secret %s: %w", name, err)
	}
	fmt.Fprintf(c.io.Out, "removed %s\n", name)
	return nil
}
