package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
)

// app is what all commands share.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer                          // for people: a terminal gets no control characters
	frames         io.Writer                          // stdout for programs, as it is
	terminal       func() (io.ReadWriteCloser, error) // openConsole

	serving atomic.Bool // it serves a client, until it is told to end
}

const about = `mcp-bridge is one MCP server with one main tool, run_python: the model writes Python, which runs in a fresh, rootless,
locked-down container and may call the tools of all your other MCP servers as mcp_<alias>.tool(...).

Without a command, and with its input not a terminal, it serves MCP over stdio.

Exit codes: 0 success, 1 failure, 2 wrong usage, 69 the machine isn't ready (see mcp-bridge doctor); of run: the code's own
status, 124 after a timeout, 130 when cancelled, 137 out of memory; of policy test: 0 allowed, 3 the user is asked, 4 denied;
141 the reader of the output is gone.`

func (a *app) root() *cobra.Command {
	var askedVersion bool
	cmd := &cobra.Command{
		Use:           "mcp-bridge",
		Short:         "One MCP server that runs Python over all your other MCP servers",
		Long:          about,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if askedVersion {
				a.printVersion()
				return nil
			}
			if a.atTerminal() {
				return cmd.Help()
			}
			return a.serve(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&askedVersion, "version", false, "print the version, as the command version does")
	cmd.SetFlagErrorFunc(flagError)
	cmd.AddCommand(a.serveCmd(), a.runCmd(), a.serversCmd(), a.toolsCmd(), a.doctorCmd(), a.imageCmd(), a.policyCmd(), a.loginCmd(), a.logoutCmd(), a.versionCmd(),
		a.watchdogCmd(), a.demoServerCmd(), a.manCmd())
	usageArgs(cmd)
	strictHelp(cmd)
	return cmd
}

// usageArgs makes a wrong number of arguments a usageError.
func usageArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) != nil {
				return usageError{wrongArguments(cmd, args)}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		usageArgs(sub)
	}
}

// wrongArguments says what a command takes instead of args.
func wrongArguments(cmd *cobra.Command, args []string) error {
	path := cmd.CommandPath()
	_, takes, some := strings.Cut(cmd.Use, " ")
	switch {
	case cmd.HasSubCommands() && len(args) > 0:
		return unknownCommand(cmd, args[0])
	case !some:
		return fmt.Errorf("%s takes no argument, but got %q", path, args[0])
	case len(args) == 0:
		return fmt.Errorf("%s lacks its argument: %s %s", path, path, takes)
	}
	return fmt.Errorf("%s got %d arguments, more than it takes: %s %s", path, len(args), path, takes)
}

// isTerminal is true of a character device that isn't the null device: good enough to choose between help and service.
func isTerminal(f *os.File) bool {
	fi, err := f.Stat()
	if err != nil || fi.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(fi, null)
}
