package sandbox

import (
	"context"
	"encoding/json"
	"sync"
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

// toolCancel cancels a call that the code doesn't wait for any more. It is answered all the same;
// for one that was answered already it comes too late.
func (n *session) toolCancel(f entrypoint.FromGuest) {
	if !n.callIDs[f.CallID] {
		n.badFrames++
		return
	}
	n.underWay.cancel(f.CallID)
}

// errCancelled is the result of a call that the code has cancelled.
var errCancelled = &entrypoint.CallError{Code: entrypoint.CodeCancelled,
	Message: "the code has cancelled this call"}

// result has the host answer a call once there is room for the result. When call, the call's
// context, has ended, that is the answer.
func (n *session) result(call context.Context, f entrypoint.FromGuest) (json.RawMessage, error) {
	if !n.unsent.wait(call) {
		return nil, errCancelled
	}
	c := Call{Run: n.req.ID, ID: f.CallID, Provider: f.Provider, Tool: f.Tool, Input: f.Input}
	if f.Progress {
		p := newProgress(call, f.CallID, n.background, n.sendProgress)
		defer p.finish()
		c.Progress = p.tell
	}
	result, err := n.host.Call(call, c)
	if call.Err() != nil {
		return nil, errCancelled
	}
	return result, err
}

// sendProgress sends a frame when the guest has room for it, unless ctx ends before.
func (n *session) sendProgress(ctx context.Context, frame entrypoint.Progress) {
	line, err := n.stdin.Encode(frame)
	if err == nil && n.untaken.spend(ctx, int64(len(line))) {
		err = n.stdin.WriteLine(line)
	}
	if err != nil {
		n.sandbox.log.Debug("progress not sent", "run", n.req.ID, "err", err)
	}
}
