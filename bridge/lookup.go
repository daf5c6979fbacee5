package bridge

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// How long a search waits for servers, side by side: nobody waits for the slowest.
const (
	searchWait  = 10 * time.Second       // for those that have to be started because nothing is known of their tools
	relistWait  = 2 * time.Second        // for one that runs and may have other tools than are known
	lateWait    = 250 * time.Millisecond // for one that has been waited for in vain a short while ago
	searchStart = 8                      // servers that are started at a time
)

// running says whether a server need not be started to be asked.
func (h *host) running(ctx context.Context, e entry) bool {
	u, ok := h.upstreams.(interface {
		Running(ctx context.Context, server string) bool
	})
	return ok && u.Running(ctx, e.name)
}

// searchable gives what is known of the tools of some servers, by searching or from before, and which are not known, and why.
func (h *host) searchable(ctx context.Context, among []entry) ([]*toolbox, []unsearched) {
	wait, cancel := context.WithTimeout(ctx, searchWait)
	defer cancel()
	boxes := make([]*toolbox, len(among))
	reasons := make([]string, len(among))
	slots := make(chan struct{}, searchStart)
	defer h.clock.Stop()() // starting servers is not the code's own time
	var wg sync.WaitGroup
	for i, e := range among {
		box := h.catalog.shelf.known(e)
		switch {
		case !slices.Contains(h.servers, e):
			if boxes[i] = box; box == nil {
				reasons[i] = "it isn't part of this call, and its tools are not known yet"
			}
		case box != nil && !h.running(ctx, e):
			boxes[i] = box
		default:
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				boxes[i], reasons[i] = h.listed(wait, e, box)
			})
		}
	}
	wg.Wait()
	var known []*toolbox
	var left []unsearched
	for i, b := range boxes {
		if b != nil {
			known = append(known, b)
		} else {
			left = append(left, unsearched{among[i].name, reasons[i]})
		}
	}
	return known, left
}

// listed gives the tools of a server, those that were known before where it doesn't list them, and why there are none. A panic is
// such a reason: this runs on a goroutine of its own, where it would end the bridge with all runs.
func (h *host) listed(ctx context.Context, e entry, before *toolbox) (box *toolbox, why string) {
	defer func() {
		if r := recover(); r != nil {
			h.log.Error("a search has panicked over the tools of a server", "server", e.name, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			box, why = nil, fmt.Sprintf("the bridge has failed on its tools, which is a bug of the bridge; its log says more: %v", r)
		}
	}()
	if ctx.Err() != nil {
		return before, "others were waited for too long; search again"
	}
	wait, cancel := context.WithTimeout(ctx, h.patience(e, before))
	defer cancel()
	tools, err := h.upstreams.Tools(wait, e.name)
	switch {
	case err == nil:
		return h.catalog.shelf.box(e, tools), ""
	case before != nil:
		return before, ""
	case wait.Err() != nil && errors.Is(err, context.DeadlineExceeded):
		h.catalog.shelf.setLate(e)
		return nil, "it has not listed its tools in time and is perhaps still starting; search again in a while"
	}
	return nil, text.Safe(reason(e, err))
}

func (h *host) patience(e entry, before *toolbox) time.Duration {
	switch {
	case before != nil:
		return relistWait
	case h.catalog.shelf.isLate(e):
		return lateWait
	}
	return searchWait
}
