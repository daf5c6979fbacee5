// Package discovery finds the MCP servers that the user has already configured for other programs (hosts). It only reads:
// it starts nothing, opens no socket and writes no file, and it takes the file system as an fs.FS.
//
// Every entry that it finds is either a Server, which may be started as it stands, or a Problem, which says why not and
// what to do about it. A host's own rules are kept host by host: what the host denies, disables or has not approved is a
// Problem. A file that can't be read or parsed is one Problem and hides nothing but itself and what is found only by it,
// as Claude Code's plugins and VS Code's profiles are, with two exceptions: while a file of an administrator's rules, or
// Gemini CLI's of trusted folders, can't be read, the servers under those rules are Problems.
//
// Nothing in a Problem or an error comes from a value that may be a secret: environment and header values, arguments and
// URLs are never quoted; server names, file paths and names of fields and variables are.
package discovery

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/trust"
)

// A Server is one that may be started, or connected to, as it stands: whatever its host fills in is filled in.
type Server struct {
	Name        string    // as in the file; unique in a Catalog
	Transport   Transport // which of the fields below count
	Description string    // what the file says of it; often empty
	Source      Source    // the first of those that define it
	Also        []Source  // the others that define the same server, by this or another name, in order of precedence
	Tools       Filter    // which of its tools its host lets a model use
	Twins       []Twin    // what other entries for the same server say beside it, where they say anything
	OfProject   bool      // its file lies in the project, where others than the user may write
	Written     string    // a hash of its name and definition as the files have it: see ID
	FilledIn    FilledIn  // which values the file itself doesn't hold
	Files       []string  // that its definition and its host's word on it come from, whether they are there or not; absolute

	// Of Stdio.
	Command string            // as in the file: a path, or a name to look up in Env's PATH, if it has one, or in ours
	Args    []string          // nil for none
	Env     map[string]string // the entry's own variables only, also for its HeadersHelper; nil for none; values may be secrets
	Dir     string            // working directory, absolute; empty: the starter's

	// Of HTTP and SSE.
	URL            string            // absolute, of http or https; may hold a secret
	Socket         string            // the Unix socket where URL is served; empty: at URL's host
	Headers        map[string]string // sent with every request; nil for none; values may be secrets
	HeadersHelper  string            // a command line for the shell, which prints a JSON object of further headers; empty for none
	BearerTokenEnv string            // the variable of our environment that holds the token to send; empty for none
	OAuth          OAuth
}

// Transport is how a server is spoken to.
type Transport string

// The transports there are.
const (
	Stdio Transport = "stdio" // a program, over its standard input and output
	HTTP  Transport = "http"  // Streamable HTTP
	SSE   Transport = "sse"   // the older HTTP with server-sent events
)

// OAuth is what a file says of how to log in to a remote server. Its zero value says nothing: it is found out by asking the
// server.
type OAuth struct {
	Off          bool     // the file says not to log in
	ClientID     string   // registered beforehand; empty: registered when it is needed
	ClientSecret string   // of that client; a secret
	Scopes       []string // to ask for; nil: what the server says
	CallbackPort int      // of the redirect URI on this machine; 0: any
	MetadataURL  string   // of the authorization server's metadata; empty: found by asking the server
	Resource     string   // the resource indicator to send; empty: the server's URL
}

// A Twin is an entry of another file for a server that is listed under its first one.
type Twin struct {
	Source Source
	Name   string // there
	Tools  Filter // there
}

// Names are those that the server has in all its files, its own first.
func (s Server) Names() []string {
	names := []string{s.Name}
	for _, t := range s.Twins {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// HiddenBy says which of the server's files hides a tool, if one does: what one host hides isn't shown because another one has the
// same server too.
func (s Server) HiddenBy(tool string) (Source, bool) {
	for _, t := range append([]Twin{{Source: s.Source, Tools: s.Tools}}, s.Twins...) {
		if by, hidden := t.Tools.hides(tool); hidden {
			if by == (Source{}) {
				by = t.Source
			}
			return by, true
		}
	}
	return Source{}, false
}

// join adds another entry for the same server.
func (s *Server) join(other Server) {
	s.Also = append(s.Also, other.Source)
	if other.Name != s.Name || other.Tools.says() {
		s.Twins = append(s.Twins, Twin{other.Source, other.Name, other.Tools})
	}
}

// String names the server and its source. It leaves out everything that may be a secret.
func (s Server) String() string { return fmt.Sprintf("%q of %s", s.Name, s.Source) }

// LogValue is String: a Server that is logged by accident tells no secret.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.String()) }

// A Source is one file of one host, or the part of it that is of one scope.
type Source struct {
	Host  string // "Claude Code"; "mcp-bridge" for the bridge's own
	Scope string // the host's own word, such as "user", "local", "project"
	Path  string // absolute, as the operating system writes it
}

// String is what messages call the source, such as `/home/u/.cursor/mcp.json (Cursor, user)`.
func (s Source) String() string { return fmt.Sprintf("%s (%s, %s)", s.File(), s.Host, s.Scope) }

// File returns Path on one line, quoted where it has characters that a screen doesn't show.
func (s Source) File() string { return show(s.Path) }

// A Problem is something that was found and can't be used.
type Problem struct {
	Source Source
	Server string // its name, quoted and cut where it can't be shown as it is; empty when it is about the whole file
	State  State
	Reason string // a clause without a period
	Next   string // what to do about it, a clause without a period; may be empty
}

// State is what has become of an entry that isn't used, or of a file.
type State string

// The states there are.
const (
	Broken     State = "broken"       // a file, or a part of it, that can't be read
	Exposed    State = "exposed"      // a file that others than the user and root could have written
	Invalid    State = "invalid"      // malformed, or nothing that its host would use
	Disabled   State = "disabled"     // switched off by its user
	Denied     State = "denied"       // by rules of its host or of an administrator
	Unapproved State = "not approved" // a project's, about which its user has not been asked or has said no
	Unusable   State = "unusable"     // its host can use it, and the bridge can't
	Shadowed   State = "shadowed"     // another one has its name
	Duplicate  State = "duplicate"    // another one is the same server
	Itself     State = "itself"       // it is the bridge
	New        State = "new"          // came or changed where code could have written it, and the user has not said yes
)

// String is the whole of it in one line.
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

// A Catalog is what one Scan found. It shares nothing with another one.
type Catalog struct {
	Servers  []Server  // by name
	Problems []Problem // of hosts' rules and of ConfigPaths first, then in the order of the sources; then by server name
	Sources  []Source  // the files that could be read and parsed, the hosts' rules included, each once
}

// Self is what the bridge knows of itself, so that it never lists itself.
type Self struct {
	Executable string   // absolute, with links resolved; empty when it isn't known
	Names      []string // of its program, packages and images; nil means mcp-bridge
	Listen     []string // host:port of each address at which it serves; nil when it serves at none, as mcp-bridge does so far
	Hosts      []string // names and addresses of this machine, beside localhost and loopback addresses
}

// Env is everything beside the files that a Scan depends on. Paths are absolute and as the system GOOS writes them. Current
// makes one for this process.
type Env struct {
	Home         string // empty: files below it are not looked for, and that is a Problem
	Dir          string // the working directory, links resolved; empty: no project files are looked for
	ConfigHome   string // $XDG_CONFIG_HOME; empty or not absolute means Home/.config
	AppData      string // %APPDATA%; empty means Home\AppData\Roaming; used on windows only
	LocalAppData string // %LOCALAPPDATA%; empty means Home\AppData\Local; used on windows only
	GOOS         string // "linux", "darwin", "windows"; others count as linux

	Getenv func(string) string // nil means that no variable is set
	Owners trust.Owners        // of the files; its zero value trusts all of them
	Self   Self

	// Resolve says which file would be run for a command: looked up in path (a list like $PATH; empty means our own PATH)
	// if it is a bare name, with all links resolved; empty when there is none. Nil resolves nothing.
	Resolve func(command, path string) string

	// ConfigPaths are the files, and directories of *.json files, that MCP_BRIDGE_CONFIG lists. They come first. Relative
	// ones count from Dir, and a leading ~ is Home.
	ConfigPaths []string
}

// Scan reads every source there is for env and reports what it found; it never fails as a whole. The root of fsys is the
// root of the file system, so that /etc/x is read as etc/x, and on windows C:\x as C:/x; Root is the real one. Scan reads
// at most maxFile bytes of a file, of some files less, and only regular files, each once; it keeps nothing, and may be called concurrently.
//
// The first source that defines a name wins: ConfigPaths, then the rows of the table of sources from top to bottom, those of the
// user's own files before those of a project's: a project's server never takes the place of the user's own. What
// can't be used doesn't count, unless the host it belongs to would use it: then that host's further entries of the name
// don't count either.
func Scan(fsys fs.FS, env Env) Catalog {
	return newScan(fsys, env).run()
}

// run does all of it.
func (s *scan) run() Catalog {
	if s.env.Home == "" {
		s.problem(Source{Host: own, Scope: "user", Path: "~"}, "", "the home directory is not known, so nothing below it was looked for", "set HOME")
	}
	s.readProfiles()
	s.claude, s.gemini, s.qwen, s.amp = s.readPolicy(), s.readGemini(), s.readQwen(), s.readAmp()
	s.openCode = map[string]openCodeRules{openCode: s.readOpenCode(openCode), kilo: s.readOpenCode(kilo)}
	for _, p := range s.env.ConfigPaths {
		s.listed(p)
	}
	for _, ofProject := range []bool{false, true} {
		for _, r := range sources {
			if r.ofProject() == ofProject {
				s.row(r)
			}
		}
	}
	s.programs()
	return s.catalog()
}

// scan is one run of Scan.
type scan struct {
	fsys   fs.FS
	env    Env
	owners trust.Owners // env's, which looks at each file once
	places places
	claude policy
	gemini geminiRules
	qwen   geminiRules
	amp    ampRules

	openCode map[string]openCodeRules // by host

	files      map[string]*file   // by path: read once, and reported once
	values     map[string]value   // by path: of the files that entries take values from, read once
	memory     map[string]*file   // by path: what a Scanner remembers; nil for nothing
	listing    map[string]bool    // paths that ConfigPaths lists: the user's word on them is enough
	settingsOf map[string]string  // directory of a profile of VS Code → that of another one, whose settings it has
	order      map[Source]int     // for sorting problems
	own        map[[2]string]bool // host and path: files that the user wrote for all projects

	ruleFiles  map[string]map[string]bool // host → paths of the files that were looked at for its word on servers
	readingRow bool                       // what is loaded now holds servers
	taken      []string                   // paths of the files that the entry at hand takes values from

	servers      []Server
	byName       map[string]int       // index in servers
	byDefinition map[[32]byte]int     // by fingerprint: index in servers of the first
	held         map[[2]string]Source // host and name → the entry that this host uses and we can't
	problems     []Problem
	refused      map[int]Server // index in problems → the entry that isn't used there
	read         []Source
}

func newScan(fsys fs.FS, env Env) *scan {
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	if len(env.Self.Names) == 0 {
		env.Self.Names = []string{own}
	}
	s := &scan{
		fsys: fsys, env: env, files: map[string]*file{}, values: map[string]value{}, listing: map[string]bool{}, settingsOf: map[string]string{}, order: map[Source]int{}, ruleFiles: map[string]map[string]bool{},
		byName: map[string]int{}, byDefinition: map[[32]byte]int{}, held: map[[2]string]Source{}, refused: map[int]Server{},
	}
	s.owners = lookOnce(env.Owners)
	s.places = newPlaces(s)
	return s
}

// problem records one, in the place of its source.
func (s *scan) problem(src Source, server, reason, next string) {
	state := Invalid
	if server == "" {
		state = Broken
	}
	s.refuse(src, server, state, refusal{reason, next})
}

func (s *scan) refuse(src Source, server string, state State, why refusal) {
	s.number(src)
	s.problems = append(s.problems, Problem{Source: src, Server: server, State: state, Reason: why.reason, Next: why.next})
}

// number notes the order in which files are come across.
func (s *scan) number(src Source) {
	if _, ok := s.order[src]; !ok {
		s.order[src] = len(s.order)
	}
}

// helpers is the name under which code reaches the bridge's own helpers, and no server: entrypoint.RuntimeProvider.
const helpers = "runtime"

// add makes a server of the catalog, folds it into one that is identical, or reports which one hides it. What another host
// calls by another name is one server too; within a host, two names are two servers, as its user wanted it.
func (s *scan) add(srv Server) {
	if srv.Name == helpers {
		s.problem(srv.Source, display(srv.Name), "the bridge's own helpers have this name in code", "give it another name")
		return
	}
	rename := "give it another name to use both"
	if i, ok := s.byName[srv.Name]; ok {
		if first := &s.servers[i]; first.Same(srv) {
			first.join(srv)
		} else if srv.OfProject && !first.OfProject {
			s.refuse(srv.Source, display(srv.Name), Shadowed,
				refusal{"a project's server doesn't take the place of the user's own of that name, in " + first.Source.String(), rename})
		} else {
			s.refuse(srv.Source, display(srv.Name), Shadowed, refusal{"shadowed by the server of the same name in " + first.Source.String(), rename})
		}
		return
	}
	if by, ok := s.held[[2]string{srv.Source.Host, srv.Name}]; ok {
		s.refuse(srv.Source, display(srv.Name), Shadowed,
			refusal{fmt.Sprintf("shadowed by the server of the same name in %s, which %s uses and the bridge can't", by, by.Host), rename})
		return
	}
	identity := srv.fingerprint()
	if i, ok := s.twin(srv, identity); ok {
		first := &s.servers[i]
		first.join(srv)
		s.refuse(srv.Source, display(srv.Name), Duplicate,
			refusal{fmt.Sprintf("it is the same server as %s of %s, and is used under that name", display(first.Name), first.Source), ""})
		return
	}
	s.byName[srv.Name] = len(s.servers)
	if _, ok := s.byDefinition[identity]; !ok {
		s.byDefinition[identity] = len(s.servers)
	}
	s.servers = append(s.servers, srv)
}

// twin is the index of the server that is this one too: one of another host that is the Same, or, for one of a plugin's, any of
// Claude Code's with its command line or URL, as Claude Code itself has it.
func (s *scan) twin(srv Server, identity [32]byte) (int, bool) {
	if srv.Source.Scope == pluginScope {
		for i, first := range s.servers {
			if first.Source.Host == srv.Source.Host && first.Transport == srv.Transport && first.Command == srv.Command && slices.Equal(first.Args, srv.Args) && first.URL == srv.URL {
				return i, true
			}
		}
	}
	i, ok := s.byDefinition[identity]
	return i, ok && s.servers[i].Source.Host != srv.Source.Host
}

// rank is the place of a source's row in the table. The hosts' rules and what ConfigPaths lists come before all rows.
func rank(src Source) int {
	return slices.IndexFunc(sources, func(r row) bool { return r.host == src.Host && r.scope == src.Scope })
}

// usedElsewhere reports whether an entry that its own file or host keeps back is used all the same, under its name, since another file
// has it too. Then there is nothing to be said of it.
func (s *scan) usedElsewhere(problem int) bool {
	refused, ok := s.refused[problem]
	if !ok || !slices.Contains([]State{Disabled, Denied, Unapproved}, s.problems[problem].State) {
		return false
	}
	i, ok := s.byName[refused.Name]
	return ok && s.servers[i].Same(refused)
}

func (s *scan) catalog() Catalog {
	var problems []Problem
	for i, p := range s.problems {
		if !s.usedElsewhere(i) {
			problems = append(problems, p)
		}
	}
	s.problems = problems
	slices.SortFunc(s.servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	for i := range s.servers {
		srv := &s.servers[i]
		srv.Files = append(srv.Files, slices.Sorted(maps.Keys(s.ruleFiles[srv.Source.Host]))...)
	}
	slices.SortStableFunc(s.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank(a.Source), rank(b.Source)), cmp.Compare(s.order[a.Source], s.order[b.Source]),
			strings.Compare(a.Server, b.Server), strings.Compare(a.Reason, b.Reason))
	})
	return Catalog{Servers: s.servers, Problems: s.problems, Sources: s.read}
}
