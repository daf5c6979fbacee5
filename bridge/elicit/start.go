package elicit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

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

// Bounds of a definition that is shown in a question. What a longer one hides in its midst can't be
// judged.
const (
	maxDefinition      = 2000 // bytes
	maxDefinitionLines = 50
)

// maxNoes is how many definitions of one name or file the user says no to before no more of them
// are asked about: code can make a new definition at any time.
const maxNoes = 2

// mustApprove ends an error that a model reads. It names no command that a model with a shell could
// run as it stands.
const mustApprove = "The user has to approve it at a terminal (mcp-bridge servers approve, " +
	"with its name, or with --all for all that are held)."

// Starts has the user asked whether servers that are held may be started: one question at a time,
// and none again about a definition that the user has not said yes to. It is safe for concurrent
// use.
type Starts struct {
	approvals Approvals // nil: all may be started
	log       *slog.Logger

	turn   chan struct{}   // holds one value unless a question is open; guards what follows
	said   map[string]bool // IDs of the definitions that were asked about without a yes
	noes   map[string]int  // by name and by file
	logged map[string]bool // IDs of the definitions that could not be asked about
}

// NewStarts returns the Starts of one bridge. approvals may be nil.
func NewStarts(approvals Approvals, log *slog.Logger) *Starts {
	s := &Starts{approvals: approvals, log: log, turn: make(chan struct{}, 1),
		said: map[string]bool{}, noes: map[string]int{}, logged: map[string]bool{}}
	s.turn <- struct{}{}
	return s
}

// Held reports whether a server may not be started before the user says yes.
func (s *Starts) Held(server discovery.Server) bool {
	return s.approvals != nil && s.approvals.Held(server)
}

// Allow returns nil when a server may be started, for which it may ask the user. It waits for an
// answer until ctx ends.
func (s *Starts) Allow(ctx context.Context, server discovery.Server, ask Ask) error {
	if !s.Held(server) {
		return nil
	}
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return notStarted(server, "the call has ended before the user was asked")
	}
	name, file := "name "+server.Name, "file "+server.Source.Path
	switch {
	case !s.Held(server):
		return nil
	case s.said[server.ID()]:
		return notStarted(server, "the user was asked, and has not said yes. "+mustApprove)
	case max(s.noes[name], s.noes[file]) >= maxNoes:
		return notStarted(server, fmt.Sprintf("the user has not said yes to %d others of its name or file, "+
			"and is not asked about more. %s", maxNoes, mustApprove))
	}
	about := []any{"server", server.Name, "file", server.Source.Path,
		"approve", HowToApprove(server, workingDirectory())}
	yes, err := askToStart(ctx, server, ask)
	if err != nil {
		if !s.logged[server.ID()] { // code can try as often as it likes
			s.log.Info("a new server was not started: the user could not be asked", append(about, "err", err)...)
		}
		s.logged[server.ID()] = true
		return err
	}
	s.log.Info("the user was asked whether a new server may be started", append(about, "yes", yes)...)
	if yes {
		if _, err := s.approvals.Approve(server); err != nil {
			s.log.Warn("the user's yes can't be kept", "server", server.Name, "err", err)
		}
		return nil
	}
	s.said[server.ID()] = true
	s.noes[name]++
	s.noes[file]++
	return notStarted(server, "the user was asked, and has not said yes. "+mustApprove)
}

// Definition returns the definition of a server as it is shown to the user who decides about it,
// with the characters escaped that a screen doesn't show.
func Definition(s discovery.Server) string { return text.Escape(s.Describe()) }

// HowToApprove returns what the user types to approve a server. here is how the text names the
// working directory.
func HowToApprove(s discovery.Server, here string) string {
	where := ""
	if s.OfOneProject() {
		where = "in " + here + ", "
	}
	name := text.ShellWord(s.Name)
	if strings.HasPrefix(s.Name, "-") { // it is no flag
		name = "-- " + name
	}
	return fmt.Sprintf("to allow it, %srun: mcp-bridge servers approve %s", where, name)
}

// workingDirectory returns how a text names the bridge's working directory.
func workingDirectory() string {
	if dir, err := os.Getwd(); err == nil {
		return text.Escape(dir)
	}
	return "the bridge's working directory"
}

// askToStart asks the user to decide. Anything but a clear yes is a no.
func askToStart(ctx context.Context, server discovery.Server, ask Ask) (yes bool, err error) {
	shown := Definition(server)
	if len(shown) > maxDefinition || strings.Count(shown, "\n") >= maxDefinitionLines {
		return false, notStarted(server, "its definition is too long to be shown in a question. "+mustApprove)
	}
	raw, err := ask(ctx, map[string]any{
		"message": text.Escape(fmt.Sprintf("The Python code of this run wants to use the server %q. "+
			"It is new since the bridge started, or has changed, and may have been written by code. "+
			"It would be started as you, outside the sandbox.\n%s", server.Name, shown)),
		"requestedSchema": map[string]any{
			"type":     "object",
			"required": []string{"answer"},
			"properties": map[string]any{"answer": map[string]any{
				"type": "string", "title": "May it be started?", "enum": []string{answerAlways, answerNo},
				"enumNames": []string{"Start it, now and later", "Don't start it"},
			}},
		},
	})
	switch {
	case ctx.Err() != nil:
		return false, notStarted(server, "the call has ended before the user has answered")
	case errors.Is(err, ErrCannotAsk):
		return false, notStarted(server, fmt.Sprintf("the user has to say yes first, and %v. %s", err, mustApprove))
	case err != nil:
		return false, notStarted(server, fmt.Sprintf("the user could not be asked: %v", err))
	}
	action, answer := read(raw)
	return action == "accept" && answer != nil && *answer == answerAlways, nil
}

func notStarted(s discovery.Server, why string) error {
	return &entrypoint.CallError{Code: entrypoint.CodeDenied, Message: fmt.Sprintf(
		"server %q is new since the bridge started, or has changed, and was not started: %s", s.Name, why)}
}
