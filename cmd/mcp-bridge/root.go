package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/auth"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/console"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/listen"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// app is the program.
type app struct {
	io     *terminal.Streams
	frames io.Writer // stdout for programs, as it is

	serving    atomic.Bool // it serves a client, until it is told to end
	interrupts console.Interrupts
}

const about = `mcp-bridge is one MCP server with one main tool, run_python: the model writes Python, which
runs in a fresh, rootless, locked-down container and may call the tools of all your other MCP
servers as mcp_<alias>.tool(...).

Without a command, and with its input not a terminal, it serves MCP over stdio.

Exit codes: 0 success, 1 failure, 2 wrong usage, 69 the machine isn't ready (see mcp-bridge
doctor); of run: the code's own status, 124 after a timeout, 130 when cancelled, 137 out of
memory; of policy test: 0 allowed, 3 the user is asked, 4 denied; 141 the reader of the output is
gone.`

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "mcp-bridge",
		Short:         "One MCP server that runs Python over all your other MCP servers",
		Long:          about,
		Version:       version(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.io.AtTerminal() {
				return cmd.Help()
			}
			return a.serve(cmd.Context(), &listen.Listener{})
		},
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n") // as the command version prints it
	cmd.SetFlagErrorFunc(flagError)
	user := &console.Client{Streams: a.io, State: settings.StateDir(), Interrupts: &a.interrupts}
	cmd.AddCommand(serveCmd(a), runCmd(a), serversCmd(a), toolsCmd(a), doctorCmd(a), imageCmd(a),
		envCmd(a), policyCmd(a), installCmd(a), adoptCmd(a), loginCmd(a), logoutCmd(a), console.Command(user),
		secretCmd(a), auth.Command(a.io), statsCmd(a), versionCmd(a), watchdogCmd(), demoServerCmd(a), manCmd())
	cmd.InitDefaultCompletionCmd()
	for _, sub := range cmd.Commands() {
		if !sub.Runnable() { // cobra prints the help of such a one for an unknown command too
			sub.Args, sub.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	wrapArgErrors(cmd)
	strictHelp(cmd)
	return cmd
}

// wrapArgErrors makes a wrong number of arguments a mistake of usage.
func wrapArgErrors(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) != nil {
				return exit.Usage(wrongArguments(cmd, args))
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgErrors(sub)
	}
}

// wrongArguments returns what a command takes instead of args.
func wrongArguments(cmd *cobra.Command, args []string) error {
	path := cmd.CommandPath()
	_, takes, some := strings.Cut(cmd.Use, " ")
	switch {
	case cmd.HasSubCommands() && len(args) > 0 && (!some || text.Nearest(args[0], subcommands(cmd)) != nil):
		return unknownCommand(cmd, args[0])
	case !some:
		return fmt.Errorf("%s takes no argument, but got %q", path, args[0])
	case len(args) == 0:
		return fmt.Errorf("%s lacks its argument: %s %s", path, path, takes)
	}
	either, _, _ := strings.Cut(takes, " |")
	if words := strings.Fields(either); len(args) < len(words) {
		return fmt.Errorf("%s lacks %s: %s %s", path, words[len(args)], path, takes)
	}
	return fmt.Errorf("%s got %d arguments, more than it takes: %s %s", path, len(args), path, takes)
}

// unknownCommand returns that a command has no such subcommand, and which one was meant.
func unknownCommand(cmd *cobra.Command, wrong string) error {
	return fmt.Errorf("there is no command %q of %s%s", wrong, cmd.CommandPath(),
		meant(cmd, wrong, subcommands(cmd)))
}

// subcommands returns the names of a command's own commands.
func subcommands(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return names
}

// strictHelp makes help on an unknown command an error, where cobra prints the general help.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		show := help.Run
		help.RunE = func(cmd *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil {
				return exit.Usage(err)
			}
			if len(rest) > 0 {
				return exit.Usage(unknownCommand(found, rest[0]))
			}
			show(cmd, args)
			return nil
		}
	}
}

// flagError returns a mistake in the flags, with the flag that was most likely meant.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); len(args) > 0 && cmd.HasSubCommands() {
		if err := cmd.ValidateArgs(args); err != nil { // the flag is of a command that was meant
			return err
		}
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return exit.Usage(err)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return exit.Usage(fmt.Errorf("%w%s", err, meant(cmd, unknown.GetSpecifiedName(), names)))
}

// meant returns a clause with the names that are near to a wrong one, or with what lists all.
func meant(cmd *cobra.Command, wrong string, names []string) string {
	return cmp.Or(text.DidYouMean(wrong, names), "; "+cmd.CommandPath()+" --help lists them")
}

// configured returns the servers for completion; nothing is started. What is wrong with the
// configuration is not a completion's to say.
func configured(args []string) []discovery.Server {
	cfg, err := settings.Read()
	if err != nil || len(args) > 0 {
		return nil
	}
	return scan(cfg, nil).Servers
}

// completeServers completes the name of a server.
func completeServers(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, s := range configured(args) {
		out = append(out, cobra.CompletionWithDesc(s.Name, s.Source.Host))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeRemote completes the name of a server that the user may log in to.
func completeRemote(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, s := range loginServers(discovery.Catalog{Servers: configured(args)}) {
		out = append(out, s.Name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeTools completes SERVER.TOOL from the lists that servers gave last.
func completeTools(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	store := openTools()
	var out []string
	directive := cobra.ShellCompDirectiveNoFileComp
	for _, s := range configured(args) {
		list, known := catalog.List{}, false
		if store != nil {
			list, known = store.Load(s.Identity())
		}
		if !known {
			out = append(out, s.Name+".")
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		for _, t := range list.Tools {
			out = append(out, s.Name+"."+t.Name)
		}
	}
	return out, directive
}
