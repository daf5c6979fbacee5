package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// underWay are the calls of a run that have no result yet, so that the code can cancel them. It is
// safe for concurrent use.
type underWay struct {
	mu    sync.Mutex
	calls map[string]pendingCall
}

type pendingCall struct {
	provider, tool string // as the code says
	since          time.Time
	cancel         context.CancelFunc
}

// begin gives a call a context of its own. end forgets the call.
func (u *underWay) begin(ctx context.Context, f entrypoint.FromGuest) (call context.Context, end func()) {
	id := f.CallID
	call, cancel := context.WithCancel(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls == nil {
		u.calls = map[string]pendingCall{}
	}
	u.calls[id] = pendingCall{provider: f.Provider, tool: f.Tool, since: time.Now(), cancel: cancel}
	return call, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.calls, id)
		cancel()
	}
}

// cancel ends the context of a call; of one that is over, or that never was, it does nothing.
func (u *underWay) cancel(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c, pending := u.calls[id]; pending {
		c.cancel()
	}
}

// calls answers the tool calls of one run, each once. begin and cancel are for the goroutine that
// reads the frames.
type calls struct {
	host       Host
	run        string // the Request's ID
	most       int    // that a run may make
	log        *slog.Logger
	stdin      *entrypoint.Writer
	background func(func()) // starts a goroutine that the run waits for

	ids          map[string]bool
	underWay     underWay
	helpers      chan struct{}
	pending      atomic.Int64 // goroutines that answer calls
	pendingBytes atomic.Int64 // what they hold of the guest's
	unsent       *backlog     // results that have not been sent yet
	untaken      *credit      // results that were sent, and that the code has not taken yet
}

func (s *Sandbox) newCalls(r Request, h Host, background func(func())) calls {
	return calls{
		host: h, run: r.ID, most: s.cfg.MaxCalls, log: s.log, background: background,
		ids:     map[string]bool{},
		helpers: make(chan struct{}, maxHelpers),
		unsent:  newBacklog(maxPendingBytes, maxUnsent, allUnsent, &s.resultsHeld),
		untaken: newCredit(maxUntaken),
	}
}

// Bounds of the calls that are answered or wait for that, of one run. The guest itself keeps to
// about 1,024 at a time.
const (
	maxPending = 4096
	maxHelpers = 64 // of the runtime's own; upstream bounds those of each server
	// of their inputs; and of results that could not be sent yet, before further calls wait
	maxPendingBytes = 64 << 20
	maxUnsent       = 512 << 20               // of these at most; a result beyond is dropped, and its call fails
	allUnsent       = maxUnsent + maxUnsent/4 // of all runs, beside a share of each
	// bytes of results that are with the guest's supervisor, before further ones wait
	maxUntaken  = 16 << 20
	maxCallID   = 128     // bytes
	maxCallName = 4 << 10 // bytes of a server's or tool's name
)

// begin has one call answered in a goroutine of its own, so that the guest's output is still read.
// It returns false for a frame that makes no sense.
func (c *calls) begin(ctx context.Context, f entrypoint.FromGuest) bool {
	if f.CallID == "" || len(f.CallID) > maxCallID || len(f.Provider) > maxCallName ||
		len(f.Tool) > maxCallName || c.ids[f.CallID] || c.pending.Load() >= maxPending {
		return false
	}
	refuse := func(format string, a ...any) {
		err := &entrypoint.CallError{Code: entrypoint.CodeCallLimit, Message: fmt.Sprintf(format, a...)}
		c.answering(0, func() { c.answer(ctx, f.CallID, nil, err) })
	}
	size := int64(len(f.Input))
	switch {
	case len(c.ids) >= c.most:
		refuse("this run has made %d calls, those that load servers included, which is the limit of one run",
			c.most)
		return true
	case c.pendingBytes.Load()+size > maxPendingBytes:
		refuse("the calls under way hold %d MiB of arguments, which is the limit; wait for some of them",
			maxPendingBytes>>20)
		return true
	}
	c.ids[f.CallID] = true
	call, end := c.underWay.begin(ctx, f)
	c.answering(size, func() {
		defer end()
		if f.Provider == entrypoint.RuntimeProvider {
			select {
			case c.helpers <- struct{}{}:
				defer func() { <-c.helpers }()
			case <-call.Done():
			}
		}
		if ctx.Err() != nil {
			return // the run is over, though call may not have heard of it yet: no call begins now
		}
		result, err := c.result(call, f)
		if ctx.Err() != nil {
			return // the run is over
		}
		held := int64(len(result))
		if !c.unsent.hold(held) {
			result, err, held = nil, errUnsent, 0
		}
		defer c.unsent.release(held)
		c.answer(ctx, f.CallID, result, err)
	})
	return true
}

var errUnsent = &entrypoint.CallError{
	Code: entrypoint.CodeOutputLimit,
	Message: fmt.Sprintf("the tool's answer was dropped: results that the code has not read yet may hold %d "+
		"MiB of a run, and %d of all runs; read them before you ask for more, or ask for less at a time",
		maxUnsent>>20, allUnsent>>20),
}

// answering runs f in the background and counts it, and the bytes it holds, while it runs.
func (c *calls) answering(size int64, f func()) {
	c.pending.Add(1)
	c.pendingBytes.Add(size)
	c.background(func() {
		defer func() {
			c.pendingBytes.Add(-size)
			c.pending.Add(-1)
		}()
		f()
	})
}

// answer sends a tool_result when the guest has room for it, unless ctx ends before. One that is
// too long for a frame is replaced by an error that says so.
func (c *calls) answer(ctx context.Context, id string, result json.RawMessage, err error) {
	frame := entrypoint.ToolResult{Type: entrypoint.TypeToolResult, CallID: id, OK: err == nil, Result: result}
	if err != nil {
		frame.Result, frame.Error = nil, callError(err)
	} else if len(result) == 0 {
		frame.Result = json.RawMessage("null")
	}
	line, err := c.stdin.Encode(frame)
	if bad, ok := errors.AsType[*entrypoint.FrameError](err); ok {
		line, err = c.stdin.Encode(entrypoint.ToolResult{Type: entrypoint.TypeToolResult, CallID: id,
			Error: unsendable(bad)})
	}
	if err == nil && c.untaken.spend(ctx, int64(len(line))) {
		err = c.stdin.WriteLine(line)
	}
	if err != nil {
		c.log.Debug("result not sent", "run", c.run, "err", err)
	}
}

func unsendable(bad *entrypoint.FrameError) *entrypoint.CallError {
	if bad.Limit == 0 {
		return &entrypoint.CallError{Code: entrypoint.CodeInternal,
			Message: "the tool's answer can't be passed on, since it is no JSON; report it to the server's makers"}
	}
	return &entrypoint.CallError{
		Code: entrypoint.CodeOutputLimit,
		Message: fmt.Sprintf("the tool's answer of %d bytes can't be passed on: %v; ask the tool for less at a "+
			"time", bad.Size, bad),
	}
}

func callError(err error) *entrypoint.CallError {
	if ce, ok := errors.AsType[*entrypoint.CallError](err); ok {
		return ce
	}
	return &entrypoint.CallError{Code: entrypoint.CodeTool, Message: err.Error()}
}

// cancel cancels a call that the code doesn't wait for any more. It is answered all the same;
// for one that was answered already it comes too late.
func (c *calls) cancel(id string) bool {
	if c.ids[id] {
		c.underWay.cancel(id)
	}
	return c.ids[id]
}

// errCancelled is the result of a call that the code has cancelled.
var errCancelled = &entrypoint.CallError{Code: entrypoint.CodeCancelled,
	Message: "the code has cancelled this call"}

// result has the host answer a call once there is room for the result. When call, the call's
// context, has ended, that is the answer.
func (c *calls) result(call context.Context, f entrypoint.FromGuest) (json.RawMessage, error) {
	if !c.unsent.wait(call) {
		return nil, errCancelled
	}
	tool := Call{Run: c.run, ID: f.CallID, Provider: f.Provider, Tool: f.Tool, Input: f.Input}
	if f.Progress {
		p := newProgress(call, f.CallID, c.background, c.sendProgress)
		defer p.finish()
		tool.Progress = p.tell
	}
	result, err := c.host.Call(call, tool)
	if call.Err() != nil {
		return nil, errCancelled
	}
	return result, err
}

// sendProgress sends a frame when the guest has room for it, unless ctx ends before.
func (c *calls) sendProgress(ctx context.Context, frame entrypoint.Progress) {
	line, err := c.stdin.Encode(frame)
	if err == nil && c.untaken.spend(ctx, int64(len(line))) {
		err = c.stdin.WriteLine(line)
	}
	if err != nil {
		c.log.Debug("progress not sent", "run", c.run, "err", err)
	}
}

// maxWaited is how many calls the message of a run that was out of time names.
const maxWaited = 3

// longest returns the calls that have been under way for longest, at most limit of them, and how
// many there are in all.
func (u *underWay) longest(limit int) (calls []pendingCall, all int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	calls = slices.SortedFunc(maps.Values(u.calls), func(a, b pendingCall) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.provider, b.provider), cmp.Compare(a.tool, b.tool))
	})
	return calls[:min(limit, len(calls))], len(calls)
}

// waitedFor returns, to stand behind "its time limit", which calls had no result when the time was
// up, longest first.
func (u *underWay) waitedFor(providers []entrypoint.Provider) string {
	calls, all := u.longest(maxWaited)
	now := time.Now()
	if len(calls) == 0 {
		return ""
	}
	var named []string
	for _, c := range calls {
		named = append(named, fmt.Sprintf("%s (%.1fs)", c.name(providers), now.Sub(c.since).Seconds()))
	}
	if more := all - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	return ", while it waited for " + strings.Join(named, ", ")
}

// name returns how the code writes the tool. What no provider and no tool can be called is not
// repeated: the code may have said anything.
func (c pendingCall) name(providers []entrypoint.Provider) string {
	object := ""
	if c.provider == entrypoint.RuntimeProvider {
		object = c.provider
	}
	for _, p := range providers {
		if p.Name == c.provider {
			object = "mcp_" + p.Alias
		}
	}
	switch {
	case object == "":
		return "a server that isn't there"
	case !isAlias(c.tool):
		return "a tool of " + object
	}
	return object + "." + c.tool
}

// maxAlias is bytes of a tool's name that is shown.
const maxAlias = 128

// isAlias reports whether s has the form of a name that entrypoint.Aliases gives.
func isAlias(s string) bool {
	return s != "" && len(s) <= maxAlias && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
