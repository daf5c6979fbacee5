package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/stubs"
)

func toolsCmd(a *app) *cobra.Command {
	var f toolsFormat
	cmd := &cobra.Command{
		Use:   "tools [SERVER]",
		Short: "Start the servers, or one, and list their tools",
		Args:  cobra.MaximumNArgs(1),

		ValidArgsFunction: completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.out != "" && !f.stubs:
				return exit.Usage(errors.New("--out is where --stubs writes its files: give both"))
			case f.json && f.stubs:
				return exit.Usage(errors.New("--json and --stubs are two forms of the same: give one of them"))
			}
			return withParts(cmd.Context(), a.io.Err, once, func(ctx context.Context, p *parts) error {
				p.tellListed()
				servers := p.bridge.Catalog().Servers()
				if len(args) == 1 {
					s, ok := p.bridge.Catalog().Find(args[0])
					if !ok {
						why, _ := p.bridge.Catalog().Unreachable("", args[0])
						return exit.Usage(errors.New(why))
					}
					servers = []catalog.Server{s}
				}
				if len(servers) == 0 && !f.json {
					a.io.Say("there are no servers that can be used; mcp-bridge servers says what was found, and why it " +
						"is not used")
				}
				if f.stubs && f.out == "" && len(servers) > 1 {
					return exit.Usage(fmt.Errorf("there are %d servers, and a module is for one: name it, or give --out "+
						"DIR for a file of each", len(servers)))
				}
				return a.listTools(ctx, p, servers, f)
			})
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print the servers' own definitions as JSON")
	cmd.Flags().BoolVar(&f.stubs, "stubs", false,
		"print the tools of one server as Python declarations, for mypy and pyright")
	cmd.Flags().StringVar(&f.out, "out", "",
		"with --stubs: write them to `DIR`/<alias>.py, a file for each server")
	return cmd
}

// toolsFormat is how tools are shown; none of it means as text.
type toolsFormat struct {
	json, stubs bool
	out         string
}

// listTools asks all servers side by side and prints in their order. A server that fails is named;
// the others go on.
func (a *app) listTools(ctx context.Context, p *parts, servers []catalog.Server, f toolsFormat) error {
	tools := make([][]upstream.Tool, len(servers))
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { tools[i], errs[i] = p.pool.Tools(ctx, s.Name) })
	}
	wg.Wait()
	failed := false
	all := map[string][]upstream.Tool{}
	for i, s := range servers {
		if errs[i] != nil {
			failed = true
			fmt.Fprintln(a.io.Err, "mcp-bridge: "+errs[i].Error())
			continue
		}
		switch {
		case f.json:
			all[s.Name] = append([]upstream.Tool{}, tools[i]...)
		case f.stubs:
			if err := writeStub(a.io.Out, f.out, p.bridge.Catalog(), s, tools[i]); err != nil {
				return err
			}
		default:
			printTools(a.io.Out, p.bridge.Catalog(), s, tools[i])
		}
	}
	if where := hostsPolicy("tools"); where != "" && p.cfg.Policy == "" && !f.json && !f.stubs {
		a.io.Say("VERDICT is what holds without a policy, since MCP_BRIDGE_POLICY is not set" + where)
	}
	if f.json {
		if err := terminal.JSON(a.io.Out, all); err != nil {
			return err
		}
	}
	return exit.If(failed)
}

// writeStub writes the module of one server, to standard output or into a directory.
// Tools that code may not call are left out.
func writeStub(out *terminal.Output, dir string, c *catalog.Catalog, s catalog.Server,
	tools []upstream.Tool) error {
	provider, err := c.Listed(s, tools).Provider()
	if err != nil {
		return err
	}
	module := stubs.Module(provider)
	if dir == "" {
		_, err := io.WriteString(out, module)
		return err
	}
	path := filepath.Join(dir, s.Alias+".py")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(module), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(out, path)
	return nil
}

// printTools shows the tools of one server, with the verdict of host and policy on each.
func printTools(out *terminal.Output, c *catalog.Catalog, server catalog.Server, tools []upstream.Tool) {
	s := out.Screen()
	names := make([]string, 0, len(tools))
	for _, t := range tools {
		names = append(names, t.Name)
	}
	safe := entrypoint.Aliases(names)
	fmt.Fprintf(out, "%s: %s\n", server.Name, text.Plural(len(tools), "tool"))
	if len(tools) == 0 {
		return
	}
	g := terminal.Table{Rows: [][]string{{"TOOL", "IN CODE", "VERDICT", "DESCRIPTION"}}, Word: 3}
	var reasons []string
	for _, t := range tools {
		d := c.Judge(server.Name, t)
		if why := fmt.Sprintf("%s: %s", d.Verdict, text.Line(d.Why())); d.Verdict != policy.Allow &&
			!slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(text.Safe(t.Description)), "\n")
		g.Rows = append(g.Rows, []string{t.Name, "mcp_" + server.Alias + "." + safe[t.Name],
			d.Verdict.String(), text.Brief(text.Line(first), 100)})
	}
	s.Table(g)
	for _, why := range reasons {
		s.Lines(0, 2, why)
	}
}

// openTools opens where servers' tools are kept for searches; nil if the system has no such
// place.
func openTools() *catalog.Store {
	dir := settings.CacheDir()
	if dir == "" {
		return nil
	}
	return catalog.OpenStore(filepath.Join(dir, "tools"))
}

// keep keeps what a server has just said of its tools.
func (p *parts) keep(server discovery.Server, _, purpose string, tools []upstream.Tool) {
	list := catalog.List{Purpose: purpose, AsOf: time.Now(), Tools: tools}
	if err := p.tools.Save(server.Identity(), list); err != nil {
		p.log.Warn("a server's tools could not be kept for later searches", "server", server.Name, "err", err)
	}
}
