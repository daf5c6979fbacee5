package main

import (
	"github.com/spf13/cobra"

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
