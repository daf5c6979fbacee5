package config

import (
	"fmt"
	"log/slog"
	"slices"
)

// A Server is one that may be started, or connected to, as it stands: whatever its host fills in is
// filled in.
type Server struct {
	Name        string    // as in the file; unique in a Catalog
	Transport   Transport // which of the fields below count
	Description string    // what the file says of it; often empty
	Source      Source    // the first of those that define it
	Also        []Source  // the others that define it, by this or another name, in order of precedence
	Tools       Filter    // which of its tools its host lets a model use
	Twins       []Twin    // what other entries for the same server say beside it, where they say anything
	Isolate     bool      // over HTTP, each principal has the server for itself
	OfProject   bool      // its file lies in the project, where other users may write too
	Written     string    // a hash of its name and definition as the files have it: see ID
	FilledIn    FilledIn  // which values the file itself doesn't hold
	Secrets     []Secret  // places in its texts for the user's secrets, in the order of the texts
	Files       []string  // of its definition and its host's word on it, there or not; absolute
	Ignored     string    // what of its definition doesn't count, and why; empty for nothing

	// Of Stdio.
	Command string            // as in the file: a path, or a name to look up in Env's PATH, or in ours
	Args    []string          // nil for none
	Env     map[string]string // the entry's own variables only, also for HeadersHelper; may hold secrets
	Dir     string            // working directory, absolute; empty: the starter's

	// Of HTTP and SSE.
	URL            string            // absolute, of http or https; may hold a secret
	Socket         string            // the Unix socket where URL is served; empty: at URL's host
	Headers        map[string]string // sent with every request; nil for none; may hold secrets
	HeadersHelper  string            // a shell's command line that prints a JSON object of further headers
	BearerTokenEnv string            // the variable of our environment that holds the token to send
	OAuth          OAuth
}

// A Twin is an entry of another file for a server that is listed under its first one.
type Twin struct {
	Source Source
	Name   string // there
	Tools  Filter // there
}

// Names returns those that the server has in all its files, its own first.
func (s Server) Names() []string {
	names := []string{s.Name}
	for _, t := range s.Twins {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// HiddenBy reports whether one of the server's files hides a tool, and which. A tool that one host
// hides isn't shown because another one has the same server too.
func (s Server) HiddenBy(tool string) (Source, bool) {
	for _, t := range append([]Twin{{Source: s.Source, Tools: s.Tools}}, s.Twins...) {
		if by, hidden := t.Tools.Hides(tool); hidden {
			if by == (Source{}) {
				by = t.Source
			}
			return by, true
		}
	}
	return Source{}, false
}

// Join adds another entry for the same server.
func (s *Server) Join(other Server) {
	s.Also = append(s.Also, other.Source)
	if other.Name != s.Name || other.Tools.Says() {
		s.Twins = append(s.Twins, Twin{other.Source, other.Name, other.Tools})
	}
}

// String returns the server and its source. It leaves out everything that may be a secret.
func (s Server) String() string { return fmt.Sprintf("%q of %s", s.Name, s.Source) }

// LogValue returns String: a Server that is logged by accident tells no secret.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.String()) }
