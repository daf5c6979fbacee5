package main

import (
	_ "embed"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// thirdParty is the licences and notices of what is in this program; TestThirdParty holds it fresh.
//
//go:embed THIRD_PARTY
var thirdParty string

func (a *app) versionCmd() *cobra.Command {
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
			a.printVersion()
		},
	}
	cmd.Flags().BoolVar(&licenses, "licenses", false, "print the licences and notices of the modules in this program")
	return cmd
}

func (a *app) printVersion() { fmt.Fprintln(a.stdout, "mcp-bridge", version()) }

// version is what Go put into the binary: the module's version, or the revision it was built from.
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
