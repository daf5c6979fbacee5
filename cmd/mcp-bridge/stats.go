package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/stats"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/install"
)

// statsOptions is what is counted, and how it is shown.
type statsOptions struct {
	json         bool
	since, audit string
}

func statsCmd(a *app) *cobra.Command {
	var o statsOptions
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show what stayed out of your hosts' contexts, and which calls were made",
		Long: "Show what stayed out of your hosts' contexts, and which calls were made, by host and server:\n" +
			"from the audit log and from what servers last said of their tools. Nothing is started or sent.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := settings.Read()
			if err != nil {
				return err
			}
			return a.stats(cmd.Context(), cfg, o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	cmd.Flags().StringVar(&o.since, "since", "",
		"count what was done since a `time`: 2026-11-23, 2026-11-23T09:00:00Z, or so long ago: 7d, 12h")
	cmd.Flags().StringVar(&o.audit, "audit", "", "read this `file` in the place of the one of MCP_BRIDGE_AUDIT")
	return cmd
}

// statsJSON is the report for a program.
type statsJSON struct {
	stats.Report
	Audit   string   `json:"audit,omitempty"` // the log that was read; empty for none
	Damaged []string `json:"damaged"`         // what of it could not be read
}

func (a *app) stats(ctx context.Context, cfg settings.Settings, o statsOptions) error {
	since, err := sinceTime(o.since, time.Now())
	if err != nil {
		return exit.Usage(fmt.Errorf("--since=%q: %w", o.since, err))
	}
	path, named := auditFile(cfg, o.audit)
	report, damaged, err := count(ctx, scan(cfg, cfg.Logger(a.io.Err, slog.LevelWarn)), path, since)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && (!missing || o.audit != "") {
		return err
	}
	out := statsJSON{Report: report, Damaged: []string{}}
	if !missing {
		out.Audit = path
	}
	for _, d := range damaged {
		out.Damaged = append(out.Damaged, d.String())
	}
	if o.json {
		return terminal.JSON(a.io.Out, out)
	}
	printStats(a.io.Out, out)
	switch {
	case missing && named:
		a.io.Say("no call was recorded yet in " + path)
	case missing:
		a.io.Say("no call was recorded yet. Hosts that mcp-bridge install has written to record them; for others " +
			"set MCP_BRIDGE_AUDIT=" + cmp.Or(text.ShellWord(path), "FILE") + " where they start mcp-bridge")
	}
	return nil
}

// auditFile returns the log that is read: the one that is named, or else one at the usual place,
// where it need not be.
func auditFile(cfg settings.Settings, given string) (path string, named bool) {
	if path = cmp.Or(given, cfg.Audit); path != "" {
		return path, true
	}
	if dir := settings.StateDir(); dir != "" {
		path = filepath.Join(dir, "audit.jsonl")
	}
	return path, false
}

// sinceTime returns the time that --since names; the zero time for nothing.
func sinceTime(given string, now time.Time) (time.Time, error) {
	if given == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(given, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if ago, err := time.ParseDuration(given); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, given, time.Local); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.RFC3339, given); err == nil {
		return t, nil
	}
	return time.Time{}, errors.New("it must be a time such as 2026-11-23 or 2026-11-23T09:00:00Z, or how long " +
		"ago, such as 7d or 12h")
}

// count returns what was done since a time. With an error that is fs.ErrNotExist, there is no log,
// and the report is of definitions alone.
func count(ctx context.Context, found discovery.Catalog, log string,
	since time.Time) (stats.Report, []audit.Damage, error) {
	c := catalog.New(catalog.Config{Store: openTools(), Log: slog.New(slog.DiscardHandler)}, found.Servers, nil)
	counter := stats.New(since, definitions(found, openTools()), bridge.StandingTokens(c))
	damaged, err := audit.Read(ctx, log, counter.Add)
	return counter.Report(), damaged, err
}

// definitionTokens returns what the tools of a server take that its own files let a model use, as a
// host sends them, and whether the server has ever listed them.
func definitionTokens(store *catalog.Store, s discovery.Server, sent install.Sent) (n int, known bool) {
	list, known := store.Load(s.Identity())
	list.Tools = slices.DeleteFunc(list.Tools, func(t upstream.Tool) bool {
		_, hidden := s.HiddenBy(t.Name)
		return hidden
	})
	if sent.Search != "" {
		return catalog.AnnouncedTokens(s.Name, list.Tools), known
	}
	for i, t := range list.Tools {
		var schema map[string]json.RawMessage
		if sent.Without == "" || json.Unmarshal(t.InputSchema, &schema) != nil || schema[sent.Without] == nil {
			continue
		}
		delete(schema, sent.Without)
		if less, err := json.Marshal(schema); err == nil {
			list.Tools[i].InputSchema = less
		}
	}
	return catalog.DefinitionTokens(s.Name, list.Tools) + sent.PerTool*len(list.Tools), known
}

// ownTokens returns what the bridge's own tools and instructions take, as a host sends them.
func ownTokens(c *catalog.Catalog, sent install.Sent) int {
	if sent.Search != "" {
		return bridge.SearchedTokens(c, sent.Search)
	}
	return bridge.StandingTokens(c) + sent.PerTool*bridge.StandingTools
}

// definitions returns what the tools of each server take, or would take, of the context of those
// hosts that have the server, or else the bridge. Of several hosts it is the one that loads most.
func definitions(found discovery.Catalog, store *catalog.Store) (all []stats.Definition) {
	var bridged []string
	for _, p := range found.Problems {
		if p.State == discovery.Itself && !slices.Contains(bridged, p.Source.Host) {
			bridged = append(bridged, p.Source.Host)
		}
	}
	for _, s := range found.Servers {
		d := stats.Definition{Server: s.Name}
		for _, src := range append([]discovery.Source{s.Source}, s.Also...) {
			if src.Host != bridge.Name && !slices.Contains(d.Hosts, src.Host) {
				d.Hosts = append(d.Hosts, src.Host)
			}
		}
		hosts := d.Hosts
		if len(hosts) == 0 {
			hosts = bridged
		}
		for _, h := range hosts {
			n, _ := definitionTokens(store, s, install.SentBy(h))
			d.Tokens = max(d.Tokens, n)
		}
		var whole int
		if whole, d.Known = definitionTokens(store, s, install.Sent{}); len(hosts) == 0 {
			d.Tokens = whole
		}
		all = append(all, d)
	}
	return all
}

// statsLine returns the whole report as one line, for the end of other commands.
func statsLine(ctx context.Context, cfg settings.Settings, found discovery.Catalog) string {
	path, _ := auditFile(cfg, "")
	report, _, _ := count(ctx, found, path, time.Time{}) // without a log it is about definitions
	return strings.Join(report.Lines(), "; ")
}

// printStats shows the totals, the rows, and what could not be read.
func printStats(out *terminal.Output, r statsJSON) {
	s := out.Screen()
	for _, line := range r.Lines() {
		s.Lines(0, 2, line)
	}
	if len(r.Rows) > 0 {
		g := terminal.Table{Spare: 3, Numbers: 4, Rows: [][]string{
			{"HOST", "SERVER", "LOADED BY", "TOKENS", "CALLS", "ASKED", "TIME", "RESULTS", "KEPT OUT"}}}
		for _, row := range r.Rows {
			g.Rows = append(g.Rows, statsRow(row))
		}
		s.Table(g)
	}
	if n := r.Totals.Unknown; n > 0 {
		s.Lines(0, 2, fmt.Sprintf("servers whose tools aren't known yet: %d; mcp-bridge tools asks them", n))
	}
	for _, d := range r.Damaged {
		s.Lines(0, 2, "left out: "+d)
	}
}

func statsRow(r stats.Row) []string {
	tokens := "-"
	if r.Definitions != nil {
		tokens = text.Count(int64(*r.Definitions))
	}
	row := []string{cmp.Or(r.Host, "-"), cmp.Or(r.Server, "(no such server)"),
		cmp.Or(strings.Join(r.LoadedBy, ", "), "-"), tokens, strconv.Itoa(r.Calls)}
	if r.Calls == 0 {
		return append(row, "", "", "", "")
	}
	took := time.Duration(r.Seconds * float64(time.Second)).Round(time.Millisecond)
	if took > 10*time.Second {
		took = took.Round(time.Second)
	}
	return append(row, strconv.Itoa(r.Asked), took.String(), text.Size(r.ResultBytes), text.Size(r.KeptBytes))
}
