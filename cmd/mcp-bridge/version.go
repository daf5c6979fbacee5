package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/mcp-bridge/mcp-bridge/bridge/fixture"
)

// thirdParty is the licences and notices of what is in this program; TestThirdParty holds it fresh.
//
//go:embed THIRD_PARTY
var thirdParty string

func versionCmd(a *app) *cobra.Command {
	var licenses bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, or the licences of what the program contains",
		Args:  cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			if licenses {
				fmt.Fprint(a.stdout, thirdParty)
				return
			}
			fmt.Fprintln(a.stdout, "mcp-bridge", version())
		},
	}
	cmd.Flags().BoolVar(&licenses, "licenses", false,
		"print the licences and notices of the modules in this program")
	return cmd
}

// version returns what Go put into the binary: the module's version, or the revision it was built
// from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}

// manCmd writes the manual pages, for packagers.
func manCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages into a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same program writes the same pages
			header := doc.GenManHeader{Title: "MCP-BRIDGE", Section: "1", Source: "mcp-bridge " + version()}
			return doc.GenManTree(root, &header, args[0])
		},
	}
}

func demoServerCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:       "demo-server [github]",
		Short:     "Serve a made-up shop over MCP, or a made-up GitHub repository, to try the bridge with",
		Hidden:    true,
		ValidArgs: []string{"github"},
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return fixture.ServeScript(cmd.Context(), a.stdin, a.frames, fixture.GitHub)
			}
			err := fixture.Serve(cmd.Context(), a.stdin, a.frames)
			var exit *fixture.ExitError
			if errors.As(err, &exit) {
				return exitError{exit.Code}
			}
			return err
		},
	}
}
