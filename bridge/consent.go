package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
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

// consent asks the user, through the client, what a policy doesn't decide, and remembers what was answered for the run. It is safe
// for concurrent use: of one tool there is one question at a time, and calls that wait meanwhile are answered by it where it is for
// more than one call.
type consent struct {
	definitions map[string]discovery.Server
	grants      Grants // nil remembers nothing for good
	client      func(ctx context.Context, method string, params any) (json.RawMessage, error)
	log         *slog.Logger

	mu    sync.Mutex
	tools map[[2]string]*inquiry // by server and tool
}

// inquiry is what is known of the user's will on one tool in this run.
type inquiry struct {
	turn chan struct{} // holds one while nobody asks
	said string        // the answer that holds for the run, or empty, as while a grant holds; of who has the turn
}

func newConsent(definitions map[string]discovery.Server, grants Grants,
	client func(ctx context.Context, method string, params any) (json.RawMessage, error), log *slog.Logger) *consent {
	return &consent{definitions: definitions, grants: grants, client: client, log: log, tools: map[[2]string]*inquiry{}}
}

// of is the question on one tool.
func (c *consent) of(server, tool string) *inquiry {
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

// ask returns nil when the user allows the call. It waits for an answer until ctx ends, which withdraws the question.
func (c *consent) ask(ctx context.Context, s catalog.Server, t upstream.Tool, args json.RawMessage, d policy.Decision) error {
	g, tool := GrantOf(c.definitions[s.Name], t), t.Name
	q := c.of(s.Name, tool)
	select {
	case <-q.turn:
		defer func() { q.turn <- struct{}{} }()
	case <-ctx.Done():
		return deniedCall(s, tool, "the call has ended before the user was asked")
	}
	if q.said == "" {
		granted, changed := c.granted(g) // of each call again: it may be forgotten meanwhile
		if granted {
			return nil
		}
		answer, err := c.answer(ctx, s, tool, args, d, describeChange(t, changed))
		if err != nil {
			return err
		}
		c.log.Info("the user was asked", "server", s.Name, "tool", tool, "answer", answer)
		if answer == answerOnce || answer == answerAlways && c.keep(g) {
			return nil
		}
		q.said = answer
	}
	switch q.said {
	case answerNo:
		return deniedCall(s, tool, "the user has said no, for all of this run")
	case answerUnclear:
		return deniedCall(s, tool, "the user gave no clear yes, which counts as a no for all of this run")
	}
	return nil
}

// granted reports whether the user has allowed it for good, or what the server has changed since.
func (c *consent) granted(g policy.Grant) (ok bool, changed []string) {
	if c.grants == nil {
		return false, nil
	}
	kept, ok := c.grants.Granted(g)
	changed = kept.Seen.Changed(g.Seen)
	return ok && len(changed) == 0, changed
}

// maxShown bounds, in bytes, each text of a server's in a question about a tool that has changed.
const maxShown = 600

// describeChange is a line that says what has changed of a tool since the user allowed it for good, and how it is now.
func describeChange(t upstream.Tool, changed []string) string {
	if len(changed) == 0 {
		return ""
	}
	now := map[string]string{"description": t.Title + " " + t.Description, "schema": string(t.InputSchema), "annotations": string(t.Annotations)}
	var parts []string
	for _, part := range changed {
		is := strings.TrimSpace(text.Safe(now[part]))
		if len(is) > maxShown {
			is = text.First(is, maxShown) + " […]"
		}
		parts = append(parts, fmt.Sprintf("%s, now %q", part, is))
	}
	return "You have allowed it for good, but its server has changed it since: " + strings.Join(parts, "; ") + "."
}

// keep remembers an answer that is for good, and says whether it can. Where it can't, the answer holds for the run.
func (c *consent) keep(g policy.Grant) bool {
	if c.grants == nil {
		return false
	}
	_, err := c.grants.Grant(g)
	if err != nil {
		c.log.Warn("the user's answer can't be kept for good", "server", g.Server, "tool", g.Tool, "err", err)
	}
	return err == nil
}

// answer has the user answer. Whatever is no clear consent is a no.
func (c *consent) answer(ctx context.Context, s catalog.Server, tool string, args json.RawMessage, d policy.Decision, change string) (string, error) {
	form, offered := c.form(s, tool, args, d, change)
	raw, err := c.client(ctx, string(mcp.MethodElicitationCreate), form)
	switch {
	case ctx.Err() != nil:
		return "", deniedCall(s, tool, "the call has ended before the user has answered")
	case errors.Is(err, errCannotAsk):
		return "", deniedCall(s, tool, fmt.Sprintf("%s has the user asked first, and %v.%s To allow it, run%s: mcp-bridge policy grant %s",
			text.Safe(d.Why()), err, behind(change), c.where(s), text.ShellWord(policy.Literal(policy.Tool{Server: s.Name, Name: tool}))))
	case err != nil:
		return "", deniedCall(s, tool, fmt.Sprintf("the user could not be asked: %v", err))
	}
	var r struct {
		Action  string `json:"action"`
		Content struct {
			Answer *string `json:"answer"`
		} `json:"content"`
	}
	switch readable := json.Unmarshal(raw, &r) == nil; {
	case readable && r.Action == "accept" && r.Content.Answer == nil:
		return answerOnce, nil // accepted as it was shown, with the default
	case readable && r.Action == "accept" && slices.Contains(offered, *r.Content.Answer):
		return *r.Content.Answer, nil
	case readable && r.Action == "decline":
		return answerNo, nil
	}
	return answerUnclear, nil
}

// where says in which directory a grant of a server's tool has to be given, as far as that counts: not its name, which is none of the
// code's business.
func (c *consent) where(s catalog.Server) string {
	if c.definitions[s.Name].StartedHere() {
		return " in the bridge's working directory"
	}
	return ""
}

// form returns the question as the client shows it, and the answers that it offers. The least of
// them is the default, so that a client needs only one key for it: Claude Code opens no field that
// has a value, VS Code selects it. Where nothing more than this call can be allowed, there is no field.
//
// What the code chooses comes last and can't add lines. If some of its arguments are not shown, the
// user can allow this call but none after it.
func (c *consent) form(s catalog.Server, tool string, args json.RawMessage, d policy.Decision, change string) (question map[string]any, values []string) {
	shown, left := showArguments(args, upstream.HideNamed(c.definitions))
	values, labels := []string{answerOnce, answerRun}, []string{"Allow once", "Allow for this run"}
	if c.grants != nil {
		values, labels = append(values, answerAlways), append(labels, "Always allow")
	}
	values, labels = append(values, answerNo), append(labels, "Deny")
	fields := map[string]any{"answer": map[string]any{
		"type": "string", "title": "Allow this call?", "enum": values, "enumNames": labels, "default": answerOnce,
	}}
	if left > 0 {
		values, fields = []string{answerOnce, answerNo}, map[string]any{}
	}
	return map[string]any{
		"message": text.Escape(fmt.Sprintf("Python code wants to call tool %q of server %q.\nYou are asked because of %s.%s\nArguments: %s",
			tool, s.Name, d.Why(), behind(change), shown)),
		"requestedSchema": map[string]any{"type": "object", "properties": fields},
	}, values
}

// behind is a sentence with a space before it.
func behind(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

func deniedCall(s catalog.Server, tool, why string) error {
	return &entrypoint.CallError{Code: entrypoint.CodeDenied, Message: fmt.Sprintf("tool %q of server %q was not called: %s", tool, s.Name, why)}
}
