package catalog

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// How long a search waits for servers, side by side.
const (
	searchWait  = 10 * time.Second       // for those that have to be started: nothing is known of their tools
	relistWait  = 2 * time.Second        // for one that runs and may have other tools than are known
	lateWait    = 250 * time.Millisecond // for one that an earlier search has waited for in vain
	searchStart = 8                      // servers that are started at a time
)

// A View is a catalog as one call sees it.
type View struct {
	*Catalog

	Allowed []Server // that the call may use, by name

	// Running reports whether a server need not be started to be asked.
	Running func(ctx context.Context, s Server) bool

	// List asks a server for its tools, for a search. It starts the server if need be.
	List func(ctx context.Context, s Server) ([]upstream.Tool, error)

	// Tools does the same for the code, which may have the user asked to log in or to approve the
	// server. Its errors are for the code.
	Tools func(ctx context.Context, s Server) (*Toolset, error)

	// Reason says why List failed, without what the server's errors hold of secrets.
	Reason func(s Server, err error) string
}

// Server finds a server that the call may use. One that is configured and isn't such is denied.
func (v View) Server(name string) (Server, error) {
	s, ok := v.Find(name)
	switch {
	case !ok:
		return Server{}, invalid("%s", v.Unknown(name, v.Allowed))
	case !slices.Contains(v.Allowed, s):
		return Server{}, &entrypoint.CallError{Code: entrypoint.CodeDenied, Message: fmt.Sprintf(
			"server %q is not part of this call; name it in run_python's argument servers, or leave that out", s.Name)}
	}
	return s, nil
}

// unsearched is a server whose tools a search could not look at.
type unsearched struct {
	Server string `json:"server"`
	Reason string `json:"reason"`
}

// search returns the tools of some servers that fit a query, best first, or for no query all there
// are, in order; and which servers' tools are not known, and why.
func (v View) search(ctx context.Context, query string, among []Server) ([]hit, []unsearched, error) {
	sets, unknown := v.searchable(ctx, among)
	if query == "" {
		var all []hit
		for _, set := range sets {
			for _, t := range set.tools {
				all = append(all, hit{set: set, tool: t, fit: 1})
			}
		}
		return all, unknown, nil
	}
	x, err := v.tools.ranking.of(ctx, sets)
	if err != nil {
		return nil, nil, ended(err)
	}
	hits, err := x.search(ctx, query)
	if err != nil {
		return nil, nil, ended(err)
	}
	return hits, unknown, nil
}

// searchable returns what is known of the tools of some servers, by asking them or from before, and
// which servers' tools are not known.
func (v View) searchable(ctx context.Context, among []Server) (known []*Toolset, unknown []unsearched) {
	wait, cancel := context.WithTimeout(ctx, searchWait)
	defer cancel()
	sets := make([]*Toolset, len(among))
	reasons := make([]string, len(among))
	slots := make(chan struct{}, searchStart)
	var wg sync.WaitGroup
	for i, s := range among {
		set := v.known(s.Name)
		switch {
		case !slices.Contains(v.Allowed, s):
			if sets[i] = set; set == nil {
				reasons[i] = "it isn't part of this call, and its tools are not known yet"
			}
		case set != nil && !v.Running(ctx, s):
			sets[i] = set
		default:
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				sets[i], reasons[i] = v.listed(wait, s, set)
			})
		}
	}
	wg.Wait()
	for i, set := range sets {
		if set != nil {
			known = append(known, set)
		} else {
			unknown = append(unknown, unsearched{among[i].Name, reasons[i]})
		}
	}
	return known, unknown
}

// listed returns the tools of a server, those that were known before where it doesn't list them, or
// why there are none. A panic is such a reason: this runs on a goroutine of its own, where it would
// end the bridge with all runs.
func (v View) listed(ctx context.Context, s Server, before *Toolset) (set *Toolset, why string) {
	defer func() {
		if r := recover(); r != nil {
			v.cfg.Log.Error("a search has panicked over the tools of a server",
				"server", s.Name, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			set, why = nil, fmt.Sprintf(
				"the bridge has failed on its tools, which is a bug of the bridge; its log says more: %v", r)
		}
	}()
	if ctx.Err() != nil {
		return before, "others were waited for too long; search again"
	}
	wait, cancel := context.WithTimeout(ctx, v.patience(s, before))
	defer cancel()
	tools, err := v.List(wait, s)
	switch {
	case err == nil:
		return v.Listed(s, tools), ""
	case before != nil:
		return before, ""
	case wait.Err() != nil && errors.Is(err, context.DeadlineExceeded):
		v.tools.late.Store(s.Name, true)
		return nil, "it has not listed its tools in time and is perhaps still starting; search again in a while"
	}
	return nil, text.Safe(v.Reason(s, err))
}

// patience returns how long a search waits for a server.
func (v View) patience(s Server, before *Toolset) time.Duration {
	if before != nil {
		return relistWait
	}
	if _, late := v.tools.late.Load(s.Name); late {
		return lateWait
	}
	return searchWait
}
