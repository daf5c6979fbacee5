package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// Same says whether two servers are the same program started, or the same server reached, in the same way, whatever their
// names, sources and filters are.
func (s Server) Same(t Server) bool { return s.fingerprint() == t.fingerprint() }

// Identity names what is started or connected to, and with what, for what outlives this process: a hash, in hexadecimal, of all
// that Same compares and of the directory that the program is started in. A server that says none is started in the working
// directory of this process, where a command such as "python3 tools/mcp.py" is another program than elsewhere.
func (s Server) Identity() string {
	in := s.Dir
	if s.StartedHere() {
		in = workingDirectory()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q in %q", s.definition(), in))
	return hex.EncodeToString(sum[:])
}

// StartedHere says whether the server, or the program that makes its headers, is started in the working directory of whoever starts it.
func (s Server) StartedHere() bool {
	return s.Transport != HTTP && s.Transport != SSE && s.Dir == "" || s.HeadersHelper != ""
}

// workingDirectory is that of this process, links resolved; empty where it isn't known, because it was removed for one thing, and
// nothing can be found in it then.
func workingDirectory() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	// A link may be another directory tomorrow.
	if physical, err := filepath.EvalSymlinks(dir); err == nil {
		dir = physical
	}
	return dir
}

// fingerprint is the same for servers that are the Same.
func (s Server) fingerprint() [32]byte { return sha256.Sum256(fmt.Appendf(nil, "%q", s.definition())) }

// definition is the one list of what makes a server what it is. Formatted with %q it is unambiguous, maps are sorted in it, and
// what is nil is the same as what is empty.
func (s Server) definition() []any {
	d := []any{s.Transport, s.Command, s.Args, s.Dir, s.Env, s.URL, s.Headers, s.HeadersHelper, s.BearerTokenEnv, s.OAuth}
	if s.Socket != "" { // what has none is what it was before there were any
		d = append(d, s.Socket)
	}
	return d
}
