package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// checkedAtOnce is how many servers are started at a time: each may be a runtime of its own that loads megabytes.
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

// check starts every server, lists its tools, and ends it. The answer is by name.
func (a *app) check(ctx context.Context, f serversFormat) error {
	return a.withParts(ctx, once, func(ctx context.Context, p *parts) error {
		cfg := p.poolConfig()
		cfg.LogLevel = "info" // somebody looks
		pool := upstream.NewPool(cfg)
		health := checkAll(ctx, pool, p.catalog.Servers)
		err := pool.Close()
		if f.json {
			err = errors.Join(err, a.serversJSON(p.catalog, health))
		} else {
			err = errors.Join(err, a.serversText(p.catalog), a.checkText(p.catalog, health, f.verbose))
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
func checkAll(ctx context.Context, pool *upstream.Pool, servers []discovery.Server) map[string]upstream.Health {
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

func (a *app) checkText(c discovery.Catalog, health map[string]upstream.Health, verbose bool) error {
	if len(c.Servers) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nSERVER\tSTATE\tSTARTED IN\tTOOLS\tLISTED IN")
	for _, s := range c.Servers {
		h := health[s.Name]
		if h.Err != nil {
			fmt.Fprintf(w, "%s\tfails\t\t\t\n", s.Name)
			continue
		}
		fmt.Fprintf(w, "%s\tok\t%v\t%d\t%v\n", s.Name, h.Start.Round(time.Millisecond), h.Tools, h.List.Round(time.Millisecond))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range c.Servers {
		h := health[s.Name]
		switch {
		case h.Err != nil:
			fmt.Fprintf(a.stdout, "\n%s\n", indented(h.Err.Error()))
		case verbose && h.Stderr != "":
			fmt.Fprintf(a.stdout, "\nserver %q wrote on stderr:\n  %s\n", s.Name, indented(h.Stderr))
		}
		if verbose && h.Err == nil && h.Logged != "" {
			fmt.Fprintf(a.stdout, "\nserver %q logged:\n  %s\n", s.Name, indented(h.Logged))
		}
	}
	return nil
}

// indented has all lines but the first begin with two spaces.
func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n  ") }

func healthJSON(h upstream.Health) *checkJSON {
	c := &checkJSON{OK: h.Err == nil, StartMs: h.Start.Milliseconds(), ListMs: h.List.Milliseconds(), Tools: h.Tools, Stderr: h.Stderr, Logged: h.Logged}
	var failed *upstream.ServerError
	switch {
	case errors.As(h.Err, &failed):
		c.Error, c.Stderr, c.Logged = failed.Op+": "+failed.Err.Error(), failed.Stderr, failed.Logged
	case h.Err != nil:
		c.Error = h.Err.Error()
	}
	return c
}
