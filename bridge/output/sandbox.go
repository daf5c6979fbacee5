package output

import (
	"fmt"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Sandbox says what became of the sandbox that a call ran in.
type Sandbox struct {
	ID string `json:"id"`
	sandbox.KeptState
	New    bool   `json:"new,omitempty"`    // this call has begun it
	Woken  bool   `json:"woken,omitempty"`  // it was saved before: files are back, variables are not
	Ended  string `json:"ended,omitempty"`  // which one has ended to make room for this one
	Before string `json:"before,omitempty"` // why this sandbox replaces another one

	// Missing says which files of one that was woken aren't back; empty for none.
	Missing string `json:"missing,omitempty"`

	Running bool `json:"-"` // its processes run on between calls
	Shared  bool `json:"-"` // calls that name none have another one when it has ended
}

// Back says what a sandbox that was woken has, and what it has not.
func Back(missing string) string {
	said := "files are back, variables are not"
	if missing != "" {
		said += "; " + missing
	}
	return said
}

// Gone says what a sandbox hasn't any more whose last call was taken back.
func Gone(running bool) string {
	if running {
		return "threads of earlier calls are gone"
	}
	return "threads and processes of earlier calls are gone"
}

// line tells a model of it.
func (s *Sandbox) line() string {
	var line string
	switch {
	case s.State == sandbox.StateLost:
		next := `start again with "new"`
		if s.Shared {
			next = "the next call begins another one"
		}
		return fmt.Sprintf("sandbox %s has ended: %s; %s", s.ID, s.Reason, next)
	case s.State == sandbox.StateBefore:
		line = fmt.Sprintf("sandbox %s: variables as before this call; files as the code left them; %s", s.ID,
			Gone(s.Running))
	case s.Woken:
		line = fmt.Sprintf("sandbox %s: %s", s.ID, Back(s.Missing))
	case s.New:
		line = fmt.Sprintf("sandbox %s: new", s.ID)
	default:
		line = fmt.Sprintf("sandbox %s, call %d", s.ID, s.Calls)
	}
	if s.Woken && s.State == sandbox.StateBefore {
		line += "; " + Back(s.Missing)
	}
	if s.Ended != "" {
		line += "; " + s.Ended + " has ended for it"
	}
	if s.Note != "" {
		line += "; " + s.Note
	}
	if s.NoWayBack != "" {
		line += "; no way back from here: " + s.NoWayBack
	}
	if s.Before != "" {
		line += "; " + s.Before
	}
	return line
}
