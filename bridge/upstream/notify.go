package upstream

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Progress is how far a server says that a call is.
type Progress struct {
	Progress float64
	Total    *float64 // nil where the server doesn't know
	Message  string   // at most MaxProgressText bytes; empty for none
}

// MaxProgressText bounds Progress.Message, in bytes; of a longer one the beginning is kept.
const MaxProgressText = 1000

type progressKey struct{}

// WithProgress is ctx for a Call whose progress is to be told to f: the server is asked for it then, and only then.
//
// f is called in the order of the server's notifications, from one goroutine at a time, and no more once Call has returned. It must
// not block and must not use the pool: nothing else that the server says is heard meanwhile. A server may report as often as it likes.
func WithProgress(ctx context.Context, f func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// Observer is who is to hear of the progress of a call with this context; nil for nobody.
func Observer(ctx context.Context) func(Progress) {
	f, _ := ctx.Value(progressKey{}).(func(Progress))
	return f
}

// progress tells who waits for a call how far it is. What is no proper report, or comes for a call that is over, says nothing.
func (in *inbox) progress(raw []byte) {
	var n struct {
		Params struct {
			Token    json.RawMessage `json:"progressToken"`
			Progress *float64        `json:"progress"`
			Total    *float64        `json:"total"`
			Message  string          `json:"message"`
		} `json:"params"`
	}
	if json.Unmarshal(raw, &n) != nil || n.Params.Progress == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	id := textOf(n.Params.Token)
	if f := in.observers[id]; f != nil && in.waiting[id] == nil {
		f(Progress{Progress: *n.Params.Progress, Total: n.Params.Total, Message: in.said(n.Params.Message)})
	}
}

// said is a message as it may be shown. Secrets are looked for in more than is kept, so that none is cut in two before that.
func (in *inbox) said(message string) string {
	said := text.First(in.mask.text(text.First(message, 4*MaxProgressText)), MaxProgressText)
	return strings.Clone(said) // not all of a line of megabytes
}
