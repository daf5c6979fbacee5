package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/stubs"
)

func (a *app) toolsCmd() *cobra.Command {
	var f toolsFormat
	cmd := &cobra.Command{
		Use:   "tools [SERVER]",
		Short: "Start the servers, or one, and list their tools",
		Args:  cobra.MaximumNArgs(1),

		ValidArgsFunction: completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.out != "" && !f.stubs:
				return usageError{errors.New("--out is where --stubs writes its files: give both")}
			case f.json && f.stubs:
				return usageError{errors.New("--json and --stubs are two forms of the same: give one of them")}
			}
			return a.withParts(cmd.Context(), once, func(ctx context.Context, p *parts) error {
				p.tellListed()
				alias := aliases(p.catalog)
				var names []string
				for _, s := range p.catalog.Servers {
					if len(args) == 0 || isCalled(args[0], s, alias) {
						names = append(names, s.Name)
					}
				}
				if len(args) == 1 && len(names) == 0 {
					why, _ := p.bridge.Catalog().Unreachable("", args[0])
					return usageError{errors.New(why)}
				}
				if len(names) == 0 && !f.json {
					a.say("there are no servers that can be used; mcp-bridge servers says what was found, and why it is " +
						"not used")
				}
				if f.stubs && f.out == "" && len(names) > 1 {
					return usageError{fmt.Errorf("there are %d servers, and a module is for one: name it, or give --out "+
						"DIR for a file of each", len(names))}
				}
				return a.listTools(ctx, p, names, alias, f)
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

// listTools asks all servers side by side and prints in the order of names. A server that fails is
// named; the others go on.
func (a *app) listTools(ctx context.Context, p *parts, names []string, alias map[string]string,
	f toolsFormat) error {
	tools := make([][]upstream.Tool, len(names))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { tools[i], errs[i] = p.pool.Tools(ctx, name) })
	}
	wg.Wait()
	failed := false
	all := map[string][]toolJSON{}
	for i, name := range names {
		if errs[i] != nil {
			failed = true
			fmt.Fprintln(a.stderr, "mcp-bridge: "+errs[i].Error())
			continue
		}
		switch {
		case f.json:
			all[name] = toolsJSON(tools[i])
		case f.stubs:
			if err := a.writeStub(f.out, name, alias[name], p, tools[i]); err != nil {
				return err
			}
		default:
			a.printTools(name, alias[name], p, tools[i])
		}
	}
	if f.json {
		if err := printJSON(a.stdout, all); err != nil {
			return err
		}
	}
	if failed {
		return exitError{exitFailure}
	}
	return nil
}

type toolJSON struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	Invalid      string          `json:"invalid,omitempty"`
}

func toolsJSON(tools []upstream.Tool) []toolJSON {
	out := []toolJSON{}
	for _, t := range tools {
		out = append(out, toolJSON(t))
	}
	return out
}

// writeStub writes the module of one server, to standard output or into a directory.
// Tools that code may not call are left out.
func (a *app) writeStub(dir, name, alias string, parts *parts, tools []upstream.Tool) error {
	p := entrypoint.Provider{Name: name, Alias: alias, Tools: map[string]entrypoint.Tool{}}
	for _, s := range parts.catalog.Servers {
		if s.Name == name {
			p.Description = s.Description
		}
	}
	safe := aliasesOf(tools)
	for _, t := range tools {
		if parts.bridge.Catalog().Judge(name, t).Verdict == policy.Deny {
			continue
		}
		p.Tools[safe[t.Name]] = entrypoint.Tool{SafeName: safe[t.Name], OriginalName: t.Name,
			Description: t.Description,
			InputSchema: t.InputSchema, OutputSchema: t.OutputSchema}
	}
	if dir == "" {
		_, err := io.WriteString(a.stdout, stubs.Module(p))
		return err
	}
	path := filepath.Join(dir, alias+".py")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(stubs.Module(p)), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, path)
	return nil
}

// aliasesOf returns the names that the tools of one server have in code, by their own.
func aliasesOf(tools []upstream.Tool) map[string]string {
	names := make([]string, 0, len(tools))
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return entrypoint.Aliases(names)
}

// printTools shows the tools of one server, with the verdict of host and policy on each.
func (a *app) printTools(name, alias string, p *parts, tools []upstream.Tool) {
	s := a.stdout.Screen()
	safe := aliasesOf(tools)
	fmt.Fprintf(a.stdout, "%s: %d tools\n", name, len(tools))
	if len(tools) == 0 {
		return
	}
	g := terminal.Table{Rows: [][]string{{"TOOL", "VERDICT", "DESCRIPTION"}}, Word: 2}
	var reasons []string
	for _, t := range tools {
		d := p.bridge.Catalog().Judge(name, t)
		if why := fmt.Sprintf("%s: %s", d.Verdict, text.Line(d.Why())); d.Verdict != policy.Allow &&
			!slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(text.Safe(t.Description)), "\n")
		g.Rows = append(g.Rows, []string{"mcp_" + alias + "." + safe[t.Name], d.Verdict.String(),
			text.Brief(text.Line(first), 100)})
	}
	s.Table(g)
	for _, why := range reasons {
		s.Lines(0, 2, why)
	}
}
