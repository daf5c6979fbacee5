package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// Approvals know which servers may be started; *approvals.Approvals are. Its methods are used
// concurrently.
type Approvals interface {
	// Held reports whether a server may not be started before the user says yes.
	Held(discovery.Server) bool

	// Approve takes that yes, and tells other bridges.
	Approve(discovery.Server) (told int, err error)
}

// heldNote is what is said of a server that is held, before its own description.
const heldNote = "New since the bridge started, or changed: it is not started before the user says yes."

// maxTold is how much of a definition is shown in a question. What a longer one hides in its midst
// can't be judged.
const maxTold = 2000

// starts has the user asked whether servers that are held may be started. Of each definition there
// is one question at a time, and one for as long as the bridge runs where the answer isn't yes. It
// is safe for concurrent use.
type starts struct {
	approvals Approvals // nil: all may be started
	client    func(ctx context.Context, method string, params any) (json.RawMessage, error)
	log       *slog.Logger

	mu        sync.Mutex
	inquiries map[string]*inquiry // by ID of the definition
}

func newStarts(a Approvals, log *slog.Logger) *starts {
	ask := func(ctx context.Context, method string, params any) (json.RawMessage, error) {
		return askClient(ctx, policyAsks, method, params)
	}
	return &starts{approvals: a, client: ask, log: log, inquiries: map[string]*inquiry{}}
}

func (s *starts) held(server discovery.Server) bool {
	return s.approvals != nil && s.approvals.Held(server)
}

// of returns the question on one definition.
func (s *starts) of(id string) *inquiry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inquiries[id] == nil {
		q := &inquiry{turn: make(chan struct{}, 1)}
		q.turn <- struct{}{}
		s.inquiries[id] = q
	}
	return s.inquiries[id]
}

// allow returns nil when a server may be started, for which it may ask the user. It waits for an
// answer until ctx ends.
func (s *starts) allow(ctx context.Context, server discovery.Server) error {
	if !s.held(server) {
		return nil
	}
	q := s.of(server.ID())
	select {
	case <-q.turn:
		defer func() { q.turn <- struct{}{} }()
	case <-ctx.Done():
		return notStarted(server, "the call has ended before the user was asked")
	}
	if !s.held(server) {
		return nil
	}
	if q.said == "" {
		answer, err := s.ask(ctx, server)
		if err != nil {
			return err
		}
		s.log.Info("the user was asked whether a new server may be started", "server", server.Name, "file", server.Source.Path, "answer", answer)
		if answer == answerAlways {
			if _, err := s.approvals.Approve(server); err != nil {
				s.log.Warn("the user's yes can't be kept", "server", server.Name, "err", err)
			}
			return nil
		}
		q.said = answer
	}
	return notStarted(server, "the user was asked, and has not said yes; "+howToApprove(server))
}

// ask has the user decide. Whatever is no clear yes is a no.
func (s *starts) ask(ctx context.Context, server discovery.Server) (answer string, err error) {
	told := text.Escape(server.Told())
	if len(told) > maxTold {
		return "", notStarted(server, "its definition is too long to be shown in a question; "+howToApprove(server))
	}
	raw, err := s.client(ctx, string(mcp.MethodElicitationCreate), map[string]any{
		"message": fmt.Sprintf("The Python code of this run wants to use the server %s. It is new since the bridge started, or has changed, "+
			"and may have been written by code. It would be started as you, outside the sandbox.\n%s",
			text.Escape(strconv.Quote(server.Name)), told),
		"requestedSchema": map[string]any{
			"type":     "object",
			"required": []string{"answer"},
			"properties": map[string]any{"answer": map[string]any{
				"type": "string", "title": "May it be started?", "enum": []string{answerAlways, answerNo}, "enumNames": []string{"Start it, now and later", "Don't start it"},
			}},
		},
	})
	switch {
	case ctx.Err() != nil:
		return "", notStarted(server, "the call has ended before the user has answered")
	case errors.Is(err, errCannotAsk):
		return "", notStarted(server, fmt.Sprintf("the user has to say yes first, and %v; %s", err, howToApprove(server)))
	case err != nil:
		return "", notStarted(server, fmt.Sprintf("the user could not be asked: %v", err))
	}
	var r struct {
		Action  string `json:"action"`
		Content struct {
			Answer string `json:"answer"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &r) == nil && r.Action == "accept" && r.Content.Answer == answerAlways {
		return answerAlways, nil
	}
	return answerNo, nil
}

func notStarted(s discovery.Server, why string) error {
	return &entrypoint.CallError{Code: entrypoint.CodeDenied,
		Message: fmt.Sprintf("server %q is new since the bridge started, or has changed, and was not started: %s", s.Name, why)}
}

// HowToApprove returns what the user types to approve a server. Here is the working directory as it
// is called where that is read.
func HowToApprove(s discovery.Server, here string) string {
	where := ""
	if s.OfOneProject() {
		where = "in " + here + ", "
	}
	return fmt.Sprintf("to allow it, %srun: mcp-bridge servers approve %s", where, text.ShellWord(s.Name))
}

func howToApprove(s discovery.Server) string {
	return HowToApprove(s, "the bridge's working directory")
}

// allowed asks for a server of this run that was held when the run began.
func (h *host) allowed(ctx context.Context, s entry) error {
	if !s.held {
		return nil
	}
	return h.starts.allow(ctx, h.catalog.definitions[s.name])
}
