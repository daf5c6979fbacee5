package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/fixture"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

// watchdogName is the command that the bridge starts itself as: see package guard.
const watchdogName = "watchdog"

func (a *app) watchdogCmd() *cobra.Command {
	return &cobra.Command{
		Use:    watchdogName,
		Short:  "End what a killed bridge left behind; the bridge starts this itself",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return guard.Watch(os.Stdin) },
	}
}

func (a *app) demoServerCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-server",
		Short:  "Serve a made-up shop over MCP, to try the bridge with",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := fixture.Serve(cmd.Context(), a.stdin, a.stdout)
			var exit *fixture.ExitError
			if errors.As(err, &exit) {
				return exitError{exit.Code}
			}
			return err
		},
	}
}
