package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// configured returns the servers for completion; nothing is started. What is wrong with the
// configuration is not a completion's to say.
func configured(args []string) []discovery.Server {
	cfg, err := readConfig()
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

// completeRemote completes the name of a server that one may log in to.
func completeRemote(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	servers := slices.DeleteFunc(configured(args), func(s discovery.Server) bool { return !isRemote(s) })
	var out []string
	for _, s := range servers {
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
			list, known = store.Load(catalog.Key(s))
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

// flagError returns a mistake in the flags, with the flag that was most likely meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usageError{err}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	next := fmt.Sprintf("; %s --help lists them", cmd.CommandPath())
	if near := meant(unknown.GetSpecifiedName(), names); near != "" {
		next = near
	}
	return usageError{fmt.Errorf("%w%s", err, next)}
}

// manCmd writes the manual pages, for those who package the program.
func (a *app) manCmd() *cobra.Command {
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
