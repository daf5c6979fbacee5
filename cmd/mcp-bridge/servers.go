package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

func serversCmd(a *app) *cobra.Command {
	var f serversFormat
	cmd := &cobra.Command{
		Use:   "servers [SERVER]",
		Short: "Show which servers were found where, which are not used, and why",
		Long: "Show which servers were found where, which are not used, and why.\n" +
			"With the name of one, show what would be run or connected to, with which variables, and which\n" +
			"file or rule hides something of it. " +
			"Secrets are not shown.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.verbose && !f.check {
				return exit.Usage(errors.New("-v goes with --check; to see more of a server: mcp-bridge servers SERVER"))
			}
			if f.check {
				return a.check(cmd.Context(), args, f)
			}
			cfg, err := settings.Read()
			if err != nil {
				return err
			}
			catalog, err := only(scan(cfg, cfg.Logger(a.io.Err, slog.LevelWarn)), args)
			switch {
			case err != nil:
				return err
			case f.json:
				return printServersJSON(a.io.Out, catalog, nil)
			case len(args) == 1:
				printServer(a.io.Out, catalog)
			default:
				printServers(a.io.Out, catalog)
			}
			return nil
		},
	}
	cmd.AddCommand(approveCmd(a))
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	cmd.Flags().BoolVar(&f.check, "check", false,
		"start each server, list its tools, and say how long it took or why it fails")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false,
		"with --check: show also what servers say that don't fail")
	return cmd
}

// serversFormat is what is shown of the servers, and how.
type serversFormat struct{ json, check, verbose bool }

func aliases(c discovery.Catalog) map[string]string {
	names := make([]string, 0, len(c.Servers))
	for _, s := range c.Servers {
		names = append(names, s.Name)
	}
	return entrypoint.ServerAliases(names)
}

// only returns the part of a catalog that is about the server that args names, by its name or its
// alias, or all of it.
func only(c discovery.Catalog, args []string) (discovery.Catalog, error) {
	if len(args) == 0 {
		return c, nil
	}
	name := args[0]
	if s, ok := catalog.New(catalog.Config{}, c.Servers, c.Problems).Find(name); ok {
		name = s.Name
	}
	out := discovery.Catalog{Sources: c.Sources}
	var names []string
	for _, s := range c.Servers {
		if s.Name == name {
			out.Servers = append(out.Servers, s)
		}
		names = append(names, s.Name)
	}
	for _, p := range c.Problems {
		if p.Server == name {
			out.Problems = append(out.Problems, p)
		}
		names = append(names, p.Server)
	}
	if len(out.Servers)+len(out.Problems) == 0 {
		return out, exit.Usage(fmt.Errorf("there is no server %q%s; mcp-bridge servers lists them", name,
			text.DidYouMean(name, names)))
	}
	return out, nil
}

// printServers shows how many servers are used, which, and what isn't.
func printServers(out *terminal.Output, c discovery.Catalog) {
	s := out.Screen()
	fmt.Fprintln(out, counts(c))
	unused := func(p discovery.Problem) bool { return p.Server != "" }
	if len(c.Servers) == 0 && slices.ContainsFunc(c.Problems, unused) {
		fmt.Fprintln(out, "servers were found, and none of them may be used")
	} else if len(c.Servers) == 0 {
		fmt.Fprintf(out, "no servers that can be used were found in the files of %d hosts (Claude Code, "+
			"Cursor, VS Code, Codex …: docs/hosts.md lists them).\n"+
			"add some to one of them, or to a file of the bridge's own: %s, or one that MCP_BRIDGE_CONFIG names.\n"+
			`such a file: {"mcpServers": {"files": {"command": "npx", "args": ["-y", `+
			`"@modelcontextprotocol/server-filesystem", "/path"]}}}`+"\n",
			discovery.Hosts(), "~/.config/mcp/servers/my.json")
	} else {
		alias := aliases(c)
		g := terminal.Table{Rows: [][]string{{"SERVER", "IN CODE", "BY", "HOST", "SCOPE", "FILE"}}, Spare: 2}
		for _, srv := range c.Servers {
			g.Rows = append(g.Rows, []string{srv.Name, "mcp_" + alias[srv.Name], string(srv.Transport),
				srv.Source.Host, srv.Source.Scope, srv.Source.File()})
			for _, also := range srv.Also {
				g.Rows = append(g.Rows, []string{"", "", "", also.Host, also.Scope, also.File()})
			}
		}
		s.Table(g)
	}
	showProblems(s, c.Problems)
}

// counts returns how many servers are used and how many are not, and how many files can't be read.
func counts(c discovery.Catalog) string {
	unused := unusedServers(c)
	files := len(c.Problems) - unused
	line := fmt.Sprintf("%d used, %d not", len(c.Servers), unused)
	if files > 0 {
		line += fmt.Sprintf("; files that can't be used: %d", files)
	}
	return line
}

// unusedServers returns how many of the problems are each of one server.
func unusedServers(c discovery.Catalog) (n int) {
	for _, p := range c.Problems {
		if p.Server != "" {
			n++
		}
	}
	return n
}

// showProblems shows what isn't used: those with the same reason under that reason.
func showProblems(s terminal.Screen, all []discovery.Problem) {
	if len(all) == 0 {
		return
	}
	s.Lines(0, 0, "\nnot used:")
	type why struct {
		state        discovery.State
		reason, next string
	}
	var order []why
	found := map[why][]discovery.Problem{}
	for _, p := range all {
		w := why{p.State, p.Reason, p.Next}
		if found[w] == nil {
			order = append(order, w)
		}
		found[w] = append(found[w], p)
	}
	for _, w := range order {
		s.Lines(2, 4, string(w.state)+": "+w.reason)
		for from := found[w]; len(from) > 0; {
			n := 1
			var names []string
			for n < len(from) && from[n].Source == from[0].Source {
				n++
			}
			for _, p := range from[:n] {
				if p.Server != "" {
					names = append(names, p.Server)
				}
			}
			where := from[0].Source.String()
			if len(names) > 0 {
				where = strings.Join(names, ", ") + ", in " + where
			}
			s.Lines(4, 6, where)
			from = from[n:]
		}
		if w.next != "" {
			s.Lines(4, 6, "next: "+w.next)
		}
	}
}

// serverJSON is what a program is told of a server: no value of a variable or a header, and no
// other secret.
type serverJSON struct {
	Name        string             `json:"name"`
	Alias       string             `json:"alias"`
	Transport   string             `json:"transport"`
	Description string             `json:"description,omitempty"`
	Source      discovery.Source   `json:"source"`
	Also        []discovery.Source `json:"also,omitempty"`
	startJSON
	Check *checkJSON `json:"check,omitempty"`
}

func printServersJSON(out *terminal.Output, c discovery.Catalog, health map[string]upstream.Health) error {
	alias := aliases(c)
	all := struct {
		Servers  []serverJSON        `json:"servers"`
		Problems []discovery.Problem `json:"problems"`
		Sources  []discovery.Source  `json:"sources"`
	}{[]serverJSON{}, append([]discovery.Problem{}, c.Problems...), append([]discovery.Source{}, c.Sources...)}
	for _, s := range c.Servers {
		e := serverJSON{Name: s.Name, Alias: alias[s.Name], Transport: string(s.Transport),
			Description: s.Description, Source: s.Source, Also: s.Also, startJSON: startOf(s)}
		if h, ok := health[s.Name]; ok {
			e.Check = healthJSON(h)
		}
		all.Servers = append(all.Servers, e)
	}
	return terminal.JSON(out, all)
}

// checkedAtOnce is how many servers are started at a time: each may be a runtime of its own that
// loads megabytes.
const checkedAtOnce = 8

// checkJSON is what a program is told of a server that was tried.
type checkJSON struct {
	OK      bool   `json:"ok"`
	StartMs int64  `json:"start_ms,omitempty"`
	ListMs  int64  `json:"list_ms,omitempty"`
	Tools   int    `json:"tools"`
	Error   string `json:"error,omitempty"`
	Stderr  string `json:"stderr,omitempty"`
	Logged  string `json:"logged,omitempty"`
}

// check starts every server, or the one that args names, lists its tools, and ends it.
func (a *app) check(ctx context.Context, args []string, f serversFormat) error {
	return withParts(ctx, a.io.Err, once, func(ctx context.Context, p *parts) error {
		catalog, err := only(p.catalog, args)
		if err != nil {
			return err
		}
		cfg := p.poolConfig()
		cfg.LogLevel = "info" // since the user looks
		pool := upstream.NewPool(cfg)
		health := checkAll(ctx, pool, catalog.Servers)
		err = pool.Close()
		if f.json {
			err = errors.Join(err, printServersJSON(a.io.Out, catalog, health))
		} else {
			printCheck(a.io.Out, catalog, health, f.verbose)
		}
		for _, h := range health {
			if h.Err != nil && err == nil {
				err = exit.With(exit.Failed)
			}
		}
		return err
	})
}

// checkAll tries all servers, a few at a time, so that a slow one holds up no more than it must.
func checkAll(ctx context.Context, pool *upstream.Pool,
	servers []discovery.Server) map[string]upstream.Health {
	found := make([]upstream.Health, len(servers))
	turns := make(chan struct{}, checkedAtOnce)
	var wg sync.WaitGroup
	for i, s := range servers {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			found[i] = pool.Check(ctx, s.Name)
		})
	}
	wg.Wait()
	health := map[string]upstream.Health{}
	for i, s := range servers {
		health[s.Name] = found[i]
	}
	return health
}

// printCheck shows one table of all servers, those that fail first, and then why they do.
func printCheck(out *terminal.Output, c discovery.Catalog, health map[string]upstream.Health, verbose bool) {
	s := out.Screen()
	fails, byHand := 0, false
	var broken, works [][]string
	for _, srv := range c.Servers {
		h := health[srv.Name]
		if h.Err != nil {
			fails++
			byHand = byHand || srv.Transport == discovery.Stdio && len(srv.Secrets) == 0
			broken = append(broken, []string{"fails", srv.Name, "", "", "", srv.Source.Host, srv.Source.Path})
			continue
		}
		works = append(works, []string{"ok", srv.Name, strconv.Itoa(h.Tools),
			h.Start.Round(time.Millisecond).String(),
			h.List.Round(time.Millisecond).String(), srv.Source.Host, srv.Source.Path})
	}
	fmt.Fprintf(out, "%d ok, %d failing; %s\n", len(works), fails, counts(c))
	if len(c.Servers) > 0 {
		header := [][]string{{"STATE", "SERVER", "TOOLS", "STARTED IN", "LISTED IN", "HOST", "FILE"}}
		s.Table(terminal.Table{Rows: slices.Concat(header, broken, works), Spare: 7, Word: 1})
	}
	for _, srv := range c.Servers {
		h := health[srv.Name]
		switch {
		case h.Err != nil:
			s.Lines(0, 2, "\n"+h.Err.Error())
		case verbose && h.Stderr != "":
			s.Lines(0, 2, fmt.Sprintf("\nserver %q wrote on stderr:\n%s", srv.Name, h.Stderr))
		}
		if verbose && h.Err == nil && h.Logged != "" {
			s.Lines(0, 2, fmt.Sprintf("\nserver %q logged:\n%s", srv.Name, h.Logged))
		}
	}
	if byHand {
		s.Lines(0, 0, "\nwhere that doesn't say why: run the server's command in a terminal; "+
			"mcp-bridge servers SERVER shows it")
	}
}

func healthJSON(h upstream.Health) *checkJSON {
	c := &checkJSON{OK: h.Err == nil, StartMs: h.Start.Milliseconds(), ListMs: h.List.Milliseconds(),
		Tools: h.Tools, Stderr: h.Stderr, Logged: h.Logged}
	var failed *upstream.ServerError
	switch {
	case errors.As(h.Err, &failed):
		c.Error, c.Stderr, c.Logged = failed.Op+": "+failed.Err.Error(), failed.Stderr, failed.Logged
	case h.Err != nil:
		c.Error = h.Err.Error()
	}
	return c
}
