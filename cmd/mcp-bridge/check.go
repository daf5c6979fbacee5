package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

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
	return a.withParts(ctx, once, func(ctx context.Context, p *parts) error {
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
			err = errors.Join(err, printServersJSON(a.stdout, catalog, health))
		} else {
			printCheck(a.stdout, catalog, health, f.verbose)
		}
		for _, h := range health {
			if h.Err != nil && err == nil {
				err = exitError{exitFailure}
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
	fails := 0
	var broken, works [][]string
	for _, srv := range c.Servers {
		h := health[srv.Name]
		if h.Err != nil {
			fails++
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
