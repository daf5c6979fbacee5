package auth

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/identity"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
)

// Command returns the command token, by which a user makes and revokes tokens.
func Command(io *terminal.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make and revoke the tokens by which clients of serve --http say who they are",
		Long: "Make and revoke the tokens by which clients of serve --http say who they are.\n" +
			"Of each only a hash is kept, in the file that MCP_BRIDGE_HTTP_TOKENS names. Bridges that serve\n" +
			"read it again when it changes: docs/http.md.",
	}
	add := &cobra.Command{
		Use: "add NAME", Short: "Make a token, and show it this once",
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			return withTokens(io, func(t tokenCommands) error { return t.add(args[0]) })
		},
	}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "Show who has a token, and since when",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return withTokens(io, func(t tokenCommands) error { return t.list(asJSON) })
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	revoke := &cobra.Command{
		Use: "revoke NAME", Short: "Have a token be good for nothing any more",
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeTokens,
		RunE: func(_ *cobra.Command, args []string) error {
			return withTokens(io, func(t tokenCommands) error { return t.revoke(args[0]) })
		},
	}
	cmd.AddCommand(add, list, revoke)
	return cmd
}

// tokenCommands are what the user does with tokens.
type tokenCommands struct {
	*identity.Tokens
	io *terminal.Streams
}

// withTokens does something with the tokens that are configured.
func withTokens(io *terminal.Streams, do func(tokenCommands) error) error {
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	tokens := cfg.Tokens(nil)
	if tokens == nil {
		return settings.ErrNoPlace
	}
	return do(tokenCommands{tokens, io})
}

// completeTokens completes the name of a token.
func completeTokens(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		_ = withTokens(nil, func(t tokenCommands) error {
			all, err := t.List()
			for _, token := range all {
				names = append(names, token.Name)
			}
			return err
		})
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (t tokenCommands) add(name string) error {
	token, err := t.Add(name)
	switch {
	case errors.Is(err, identity.ErrExists):
		return exit.Usage(fmt.Errorf("%s has a token; to have another one made, first: mcp-bridge token revoke %s",
			name, name))

	case errors.As(err, new(*identity.NameError)):
		return exit.Usage(err)
	case err != nil:
		return err
	}
	t.io.Say(fmt.Sprintf("the token of %s, which isn't shown again; a client sends it as Authorization: "+
		"Bearer TOKEN", name))
	if note := whoseToken(os.Geteuid(), name, t.Path()); note != "" {
		t.io.Say(note)
	}
	fmt.Fprintln(t.io.Out, token)
	return nil
}

// whoseToken returns what root should know of a token that it has made, as who it is then.
func whoseToken(uid int, name, file string) string {
	if uid != 0 {
		return ""
	}
	return fmt.Sprintf("it is for bridges that root runs, by the file %s: where another user runs the bridge, "+
		"make it as that user: scripts/as-user mcp-bridge token add %s", file, name)
}

// tokenJSON is what a program is told of a token.
type tokenJSON struct {
	Name  string `json:"name"`
	Since string `json:"since,omitempty"`
}

func (t tokenCommands) list(asJSON bool) error {
	known, err := t.List()
	if err != nil {
		return err
	}
	all := []tokenJSON{}
	rows := [][]string{{"NAME", "SINCE"}}
	for _, token := range known {
		all = append(all, tokenJSON{token.Name, token.Since})
		rows = append(rows, []string{token.Name, cmp.Or(token.Since, "-")})
	}
	return t.io.List(asJSON, all, rows, "there are no tokens; to make one: mcp-bridge token add NAME")
}

func (t tokenCommands) revoke(name string) error {
	switch err := t.Revoke(name); {
	case errors.Is(err, identity.ErrNoToken):
		return exit.Usage(fmt.Errorf("there is no token %q; mcp-bridge token list shows them", name))
	case err != nil:
		return err
	}
	fmt.Fprintf(t.io.Out, "revoked the token of %s: no request with it is answered from now on\n", name)
	return nil
}
