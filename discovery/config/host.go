package config

// A Host is one program whose files configure MCP servers.
type Host struct {
	Name     string
	Dirs     []Dir               // names for directories in its Paths, beside those of Places
	Format   *Format             // of all files that have none of their own
	Files    []File              // with servers; the first to define a name wins
	Settings []File              // of a project, without servers, but with rules about them
	Rules    func(*Reader) Rules // reads the rules; nil means there are none
	Install  *Install            // nil for a host whose files are only read
}

// A File is one place where a host keeps servers.
type File struct {
	Host      string // whose rules about tools hold; empty means the source's host
	Scope     string // in the host's own word, such as user or project
	Paths     Paths
	Format    *Format // nil means the host's
	Approval  Approval
	Elsewhere bool // Rules.Groups returns its entries
	Secrets   bool // its entries are given the user's secrets
}

// InProject reports whether the file lies in a project, where all who write to the project can
// write it.
func (f *File) InProject() bool { return f.Approval != None }

// Approval is whose yes the servers of a file need.
type Approval int

// The approvals.
const (
	None       Approval = iota // the user wrote the file
	ByRules                    // Rules.Approved says
	HostAsks                   // the host asks, and its answer can't be read
	NobodyAsks                 // the host starts them unasked, which the bridge doesn't
)

// A Group is entries of one source.
type Group struct {
	Source      Source
	Entries     Object
	Description string  // of those that have none
	Plugin      *Plugin // that brings them along, or nil
}

// A Plugin is what the entries of one plugin have in common.
type Plugin struct {
	Off       Refusal                     // why none of its entries is used
	Variables map[string]string           // that the host sets
	Option    func(string) (string, bool) // as its user has set it
	OfProject bool                        // it lies in the project
}

// Rules is what a host's settings say of its servers. A nil function refuses and adds nothing.
type Rules struct {
	Denied       func(*Entry) Refusal                    // refuses what settings or an administrator forbid
	DeniedOthers func(*Entry) Refusal                    // does the same to the servers of other hosts
	Denying      []string                                // files that Denied or DeniedOthers goes by now
	Off          func(name string) (by Source, off bool) // says which file switches a server off
	Approved     func(*Entry) Refusal                    // refuses what lacks the user's yes
	Tools        func(*Entry) []RuleList                 // returns the rules that hide tools
	Paths        func(scope string) []string             // returns more Paths of a file
	Groups       func(scope string) []Group              // returns the entries of a file that has them Elsewhere
}

// A Format is how a host writes its entries. An empty name means that the host has no such member.
// The ending of a file's name decides whether it is JSON, TOML or YAML.
type Format struct {
	Key        string // the member that holds the servers
	Foreign    string // what other hosts call it: a file that has this instead is reported
	Strict     bool   // the host rejects a file with a comment or a trailing comma
	References *References
	Program    Program
	Remote     Remote
	Disabled   string // the member that is true for a server that is switched off
	Enabled    string // the member that is false for one
	Tools      ToolLists

	// These may be nil. Groups returns the servers where they are no object under Key, Prepare gives
	// an entry the common shape, or refuses it, and Finish reads what only this host has.
	Groups  func(r *Reader, src Source, root Object) []Group
	Prepare func(Object) (Object, Refusal)
	Finish  func(*Entry, *Members)
}

// Program is how a host writes programs.
type Program struct {
	Command, Env, EnvFile, Dir string

	Array   bool // the command may be an array with the arguments in it
	NullEnv bool // a variable that is null is left out
}

// Remote is how a host writes remote servers.
type Remote struct {
	URLs    []URLKey
	Headers string // with / between levels
	OAuth   OAuthKeys
	Sockets bool // a URL may name a Unix socket: unix:///run/s.sock, with a path on it behind #
}

// URLKey is a member that holds a URL, and the transport where no type is given.
type URLKey struct {
	Key       string
	Transport Transport
}

// OAuthKeys are a host's names for what it says of a login, in the object Key.
type OAuthKeys struct{ Key, ClientID, ClientSecret, Scopes, Port, Metadata, Enabled string }

// ToolLists are the lists of tools that a model may and may not use.
type ToolLists struct {
	Allow, Deny string
	Patterns    bool // their names are patterns
	EmptyIsAll  bool // an empty Allow means all
}

// Plain returns what most formats have in common, as change changes it.
func Plain(change func(*Format)) *Format {
	f := &Format{
		Key: "mcpServers", Foreign: "servers", References: Undocumented,
		Program:  Program{Command: "command", Env: "env"},
		Remote:   Remote{URLs: []URLKey{{"url", HTTP}}, Headers: "headers"},
		Disabled: "disabled", Enabled: "enabled",
	}
	if change != nil {
		change(f)
	}
	return f
}

// With returns a copy of f as change changes it.
func (f *Format) With(change func(*Format)) *Format {
	c := *f
	change(&c)
	return &c
}

// Paths holds patterns of paths by system. Darwin and Windows take those of Linux where they have
// none. A pattern begins with a directory in braces or is absolute; one that ends in /*.json or
// /*.yaml is of a directory's *.json files, or of its *.json, *.yaml and *.yml files, and one that
// ends in .json(c) is of two files.
type Paths struct{ Linux, Darwin, Windows []string }

// Everywhere returns patterns that are the same on every system.
func Everywhere(patterns ...string) Paths { return Paths{Linux: patterns} }

// OnWindows returns patterns of a file that is elsewhere on windows than on the other systems.
func OnWindows(others, windows string) Paths {
	return Paths{Linux: []string{others}, Windows: []string{windows}}
}

// PerSystem returns patterns of a file that is elsewhere on each system.
func PerSystem(linux, darwin, windows string) Paths {
	return Paths{[]string{linux}, []string{darwin}, []string{windows}}
}

// Settings returns patterns of a file below the directory of the system's programs' user settings.
func Settings(file string) Paths {
	return PerSystem("{config}/"+file, "{home}/Library/Application Support/"+file, "{appdata}/"+file)
}

// A Dir is a directory or file that patterns name in braces: what a variable says, or else a
// pattern.
type Dir struct {
	Name string
	Var  string // a variable that holds a path
	Then string // is added to the variable's value
	Else Paths  // where the variable holds no absolute path
}

// Own is the host of the bridge's own files.
const Own = "mcp-bridge"
