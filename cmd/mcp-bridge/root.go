package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"
)

// app is what all commands share.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer // for people: a terminal gets no control characters
	frames         io.Writer // stdout for programs, as it is
}

const about = `mcp-bridge is one MCP server with one main tool, run_python: the model writes Python, which runs in a fresh, rootless,
locked-down container and may call the tools of all your other MCP servers as mcp_<alias>.tool(...).

Without a command, and with its input not a terminal, it serves MCP over stdio.

Exit codes: 0 success, 1 failure, 2 wrong usage, 69 the machine isn't ready (see mcp-bridge doctor); of run: the code's own
status, 124 after a timeout, 130 when cancelled, 137 out of memory; of policy test: 0 allowed, 3 the user is asked, 4 denied.`

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "mcp-bridge",
		Short:         "One MCP server that runs Python over all your other MCP servers",
		Long:          about,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f, ok := a.stdin.(*os.File); ok && isTerminal(f) {
				return cmd.Help()
			}
			return a.serve(cmd.Context())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.AddCommand(a.serveCmd(), a.runCmd(), a.serversCmd(), a.toolsCmd(), a.doctorCmd(), a.imageCmd(), a.policyCmd(), a.loginCmd(), a.logoutCmd(), a.versionCmd(),
		a.watchdogCmd(), a.demoServerCmd())
	usageArgs(cmd)
	return cmd
}

// usageArgs makes a wrong number of arguments a usageError.
func usageArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		usageArgs(sub)
	}
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
