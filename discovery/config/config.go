// Package config has the words and the readers that discovery shares with the descriptions of
// hosts: a host is a program whose files configure MCP servers.
//
// Nothing in a Problem or an error comes from a value that may be a secret: values of variables and
// headers, arguments and URLs are never quoted. Server names, paths and names of fields are.
package config

import (
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// Env is everything beside the files that a scan depends on. Paths are absolute and written as the
// system GOOS writes them.
type Env struct {
	Home         string // empty: files below it are not looked for, and that is a Problem
	Dir          string // the working directory, links resolved; empty: no project files are read
	ConfigHome   string // $XDG_CONFIG_HOME; empty or not absolute means Home/.config
	AppData      string // %APPDATA%; empty means Home\AppData\Roaming; used on windows only
	LocalAppData string // %LOCALAPPDATA%; empty means Home\AppData\Local; used on windows only
	GOOS         string // "linux", "darwin", "windows"; others count as linux

	Getenv func(string) string // nil means that no variable is set
	Owners trust.Owners        // of the files; its zero value trusts all of them

	// SecretFile returns the path of the file that is there while a secret is set. Nil: none is set.
	SecretFile func(name string) string

	// Executable is the bridge's own program, absolute, links resolved; empty if it isn't known.
	Executable string

	// Resolve returns the file that would be run for a command, with all links resolved, or an
	// empty string. A bare name is looked up in path, a list like $PATH; empty means our own PATH.
	// A nil Resolve resolves nothing.
	Resolve func(command, path string) string

	// ConfigPaths are the files, and directories of *.json files, that MCP_BRIDGE_CONFIG lists.
	// They come first and are absolute; a leading ~ is Home.
	ConfigPaths []string

	// OnlyListed has no other files read.
	OnlyListed bool
}

// A Source is one file of one host, or the part of it that is of one scope.
type Source struct {
	Host  string `json:"host"`  // "Claude Code"; "mcp-bridge" for the bridge's own
	Scope string `json:"scope"` // the host's own word, such as "user", "local", "project"
	Path  string `json:"path"`  // absolute, as the operating system writes it
}

// String returns what messages call the source, such as `/home/u/.cursor/mcp.json (Cursor, user)`.
func (s Source) String() string { return fmt.Sprintf("%s (%s, %s)", s.File(), s.Host, s.Scope) }

// File returns Path on one line, quoted where it has characters that a screen doesn't show.
func (s Source) File() string { return Show(s.Path) }

// A Problem is something that was found and can't be used.
type Problem struct {
	Source Source `json:"source"`
	Server string `json:"server,omitempty"` // as Display returns it; empty when it is about the whole file
	State  State  `json:"state"`
	Reason string `json:"reason"`         // a clause without a period
	Next   string `json:"next,omitempty"` // what to do about it, a clause without a period; may be empty
}

// String returns the whole of it in one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.Server != "" {
		fmt.Fprintf(&b, "server %s in ", p.Server)
	}
	fmt.Fprintf(&b, "%s: %s", p.Source, p.Reason)
	if p.Next != "" {
		fmt.Fprintf(&b, "; %s", p.Next)
	}
	return b.String()
}

// State is what has become of an entry that isn't used, or of a file.
type State string

// The states.
const (
	Broken     State = "broken"       // a file, or a part of it, that can't be read
	Exposed    State = "exposed"      // a file that other users could have written
	Invalid    State = "invalid"      // malformed, or nothing that its host would use
	Disabled   State = "disabled"     // switched off by its user
	Denied     State = "denied"       // by rules of its host or of an administrator
	Unapproved State = "not approved" // a project's, without its user's yes
	Unusable   State = "unusable"     // its host can use it, and the bridge can't
	Shadowed   State = "shadowed"     // another one has its name
	Duplicate  State = "duplicate"    // another one is the same server
	Itself     State = "itself"       // it is the bridge
	New        State = "new"          // came or changed where code could have written it, without a yes
)

// Refusal says why something isn't used, and what to do about it. Its zero value refuses nothing.
type Refusal struct{ Reason, Next string }

// Refuse returns a refusal: a clause, and what to do about it.
func Refuse(reason, next string) Refusal { return Refusal{reason, next} }

// Refused reports whether r refuses anything.
func (r Refusal) Refused() bool { return r != Refusal{} }

// Error returns the reason.
func (r Refusal) Error() string { return r.Reason }

// ListIt is the way around a host's approval.
const ListIt = "list the file in MCP_BRIDGE_CONFIG if you trust it"

// AsksFirst refuses a project's servers of a host that asks its user about them.
func AsksFirst(host string) Refusal {
	return Refusal{host + " asks before it starts what a project brings along, and its answer can't be " +
		"read from outside", ListIt}
}

// Unasked refuses a project's servers that no host has asked the user about, for a reason.
func Unasked(why string) Refusal {
	return Refusal{"the bridge doesn't start what a project brings along unless its user has said so, and " +
		why, ListIt}
}

// Unclear refuses all servers of a host whose administrator's rules can't be read.
func Unclear(host string, rules Source) Refusal {
	return Refusal{"it can't be told whether " + host + "'s administrator allows it: " + rules.String() +
		" can't be used", "correct that file"}
}

// Scopes that mean something to discovery.
const (
	LocalScope  = "local"  // servers that stand in another file than the project's, under its path
	PluginScope = "plugin" // servers that plugins of Claude Code bring along
	Listed      = "MCP_BRIDGE_CONFIG"
)
