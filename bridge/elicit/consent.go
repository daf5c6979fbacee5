package elicit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// The answers to a question.
const (
	answerOnce   = "once"
	answerRun    = "run"
	answerAlways = "always"
	answerNo     = "no"

	// answerUnclear stands for a question that was closed, or an answer that was not offered. It
	// counts as a no and is never offered.
	answerUnclear = "no clear answer"
)

// maxShown bounds, in bytes, each text of a server's in a question about a tool that has changed.
const maxShown = 600

// Grants are what the user has allowed for good; *approvals.Approvals are. Its methods are used
// concurrently.
type Grants interface {
	// Granted returns the grant of this tool and definition.
	Granted(policy.Grant) (policy.Grant, bool)

	// Grant keeps one, and tells other bridges.
	Grant(policy.Grant) error
}

// Ask has the user answer a form and returns the client's raw answer.
type Ask func(ctx context.Context, form map[string]any) (json.RawMessage, error)

// Call is a call of a tool that the user is asked about.
type Call struct {
	Arguments json.RawMessage
	Decision  policy.Decision     // to ask
	Grant     policy.Grant        // what a yes for good is for; it names server and tool
	Now       map[string]string   // what the server says of the tool, by the part's name in Grant.Seen
	Hide      func(string) string // hides secrets in a text
	Asked     func()              // is called when the user could be asked; may be nil
	Here      bool                // grants hold in the bridge's working directory only
}

// denied returns the error of a call that was not made.
func (c Call) denied(why string) error {
	return &entrypoint.CallError{Code: entrypoint.CodeDenied,
		Message: fmt.Sprintf("tool %q of server %q was not called: %s", c.Grant.Tool, c.Grant.Server, why)}
}

// Consent asks the user what a policy doesn't decide, and remembers the answers for one run. It is
// safe for concurrent use: there is one question about a tool at a time, and an answer that is for
// more than one call answers those that wait meanwhile.
type Consent struct {
	grants Grants // nil remembers nothing for good
	ask    Ask
	log    *slog.Logger

	mu    sync.Mutex
	tools map[[2]string]*inquiry // by server and tool
}

// inquiry is what the user has said of one tool in this run.
type inquiry struct {
	turn chan struct{} // holds one value unless a question is open
	said string        // the answer that holds for the run, or empty; guarded by turn
}

// NewConsent returns the Consent of one run. grants may be nil.
func NewConsent(grants Grants, ask Ask, log *slog.Logger) *Consent {
	return &Consent{grants: grants, ask: ask, log: log, tools: map[[2]string]*inquiry{}}
}

// inquiry returns what is known of one tool.
func (c *Consent) inquiry(server, tool string) *inquiry {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := [2]string{server, tool}
	if c.tools[key] == nil {
		q := &inquiry{turn: make(chan struct{}, 1)}
		q.turn <- struct{}{}
		c.tools[key] = q
	}
	return c.tools[key]
}

// Allow returns nil when the user allows the call. It waits for an answer until ctx ends, which
// withdraws the question.
func (c *Consent) Allow(ctx context.Context, call Call) error {
	q := c.inquiry(call.Grant.Server, call.Grant.Tool)
	select {
	case <-q.turn:
		defer func() { q.turn <- struct{}{} }()
	case <-ctx.Done():
		return call.denied("the call has ended before the user was asked")
	}
	if q.said == "" {
		granted, changed := c.granted(call.Grant) // looked up each time: it may be forgotten meanwhile
		if granted {
			return nil
		}
		answer, err := c.answer(ctx, call, changed)
		if err != nil {
			return err
		}
		c.log.Info("the user was asked", "server", call.Grant.Server, "tool", call.Grant.Tool, "answer", answer)
		if answer == answerOnce || answer == answerAlways && c.keep(call.Grant) {
			return nil
		}
		q.said = answer
	}
	switch q.said {
	case answerNo:
		return call.denied("the user has said no, for all of this run")
	case answerUnclear:
		return call.denied("the user gave no clear yes, which counts as a no for all of this run")
	}
	return nil
}

// granted reports whether the user has allowed it for good, or what the server has changed since.
func (c *Consent) granted(g policy.Grant) (ok bool, changed []string) {
	if c.grants == nil {
		return false, nil
	}
	kept, ok := c.grants.Granted(g)
	changed = kept.Seen.Changed(g.Seen)
	return ok && len(changed) == 0, changed
}

// keep remembers a yes for good and reports whether it can. Otherwise the yes holds for the run.
func (c *Consent) keep(g policy.Grant) bool {
	if c.grants == nil {
		return false
	}
	err := c.grants.Grant(g)
	if err != nil {
		c.log.Warn("the user's answer can't be kept for good", "server", g.Server, "tool", g.Tool, "err", err)
	}
	return err == nil
}

// answer returns what the user answers. Anything but a clear yes is a no.
func (c *Consent) answer(ctx context.Context, call Call, changed []string) (string, error) {
	change := call.describe(changed)
	form, offered := c.form(call, change)
	raw, err := c.ask(ctx, form)
	if call.Asked != nil && !errors.Is(err, ErrCannotAsk) {
		call.Asked()
	}
	switch {
	case ctx.Err() != nil:
		return "", call.denied("the call has ended before the user has answered")
	case errors.Is(err, ErrCannotAsk):
		where := ""
		if call.Here {
			where = " in " + workingDirectory()
		}
		tool := text.ShellWord(policy.Literal(policy.Tool{Server: call.Grant.Server, Name: call.Grant.Tool}))
		if call.Grant.Principal != "" {
			tool += " --who " + text.ShellWord(call.Grant.Principal)
		}
		return "", call.denied(fmt.Sprintf("%s has the user asked first, and %v.%s To allow it, run%s: "+
			"mcp-bridge policy grant %s", text.Safe(call.Decision.Why()), err, change, where, tool))
	case err != nil:
		return "", call.denied(fmt.Sprintf("the user could not be asked: %v", err))
	}
	action, answer := read(raw)
	switch {
	case action == "accept" && answer == nil:
		return answerOnce, nil // accepted as it was shown, with the default
	case action == "accept" && slices.Contains(offered, *answer):
		return *answer, nil
	case action == "decline":
		return answerNo, nil
	}
	return answerUnclear, nil
}

// read returns what a client's answer says, "" and nil where that can't be read.
func read(raw json.RawMessage) (action string, answer *string) {
	var r struct {
		Action  string `json:"action"`
		Content struct {
			Answer *string `json:"answer"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return "", nil
	}
	return r.Action, r.Content.Answer
}

// form returns the question as the client shows it, and the answers that it offers. The least of
// them is the default, so that a client needs only one key for it: Claude Code opens no field that
// has a value, VS Code selects it. Where only this call can be allowed, there is no field.
//
// What the code chooses comes last and can't add lines. If some of its arguments are not shown in
// full, the user can allow this call but none after it.
func (c *Consent) form(call Call, change string) (form map[string]any, values []string) {
	shown, whole := showArguments(call.Arguments, call.Hide)
	values, labels := []string{answerOnce, answerRun}, []string{"Allow once", "Allow for this run"}
	if c.grants != nil {
		values, labels = append(values, answerAlways), append(labels, "Always allow")
	}
	values, labels = append(values, answerNo), append(labels, "Deny")
	fields := map[string]any{"answer": map[string]any{
		"type": "string", "title": "Allow this call?", "enum": values, "enumNames": labels, "default": answerOnce,
	}}
	if !whole {
		values, fields = []string{answerOnce, answerNo}, map[string]any{}
	}
	return map[string]any{
		"message": text.Escape(fmt.Sprintf("Python code wants to call tool %q of server %q.\n"+
			"You are asked because of %s.%s\nArguments: %s",
			call.Grant.Tool, call.Grant.Server, call.Decision.Why(), change, shown)),
		"requestedSchema": map[string]any{"type": "object", "properties": fields},
	}, values
}

// describe returns a sentence, with a space before it, that says what has changed of a tool since
// the user allowed it for good, and how it is now.
func (c Call) describe(changed []string) string {
	if len(changed) == 0 {
		return ""
	}
	var parts []string
	for _, part := range changed {
		is := strings.TrimSpace(text.Safe(c.Now[part]))
		if len(is) > maxShown {
			is = text.First(is, maxShown) + " […]"
		}
		parts = append(parts, fmt.Sprintf("%s, now %q", part, is))
	}
	return " You have allowed it for good, but its server has changed it since: " +
		strings.Join(parts, "; ") + "."
}
