package discovery

// form is how a host reads its files: its dialect, and no other host's. A name that is empty is of a member that the host
// doesn't heed. What syntax a file has, its ending says.
type form struct {
	host     string   // whose it is, for messages; set by who reads
	keys     []string // of the members that hold servers, with / between levels
	foreign  string   // a key that other hosts use for the same and that this one doesn't read
	strict   bool     // plain JSON: a file with a comment or a trailing comma is rejected whole
	single   bool     // a file may hold one entry, named after the file
	listed   bool     // the servers are an array of objects with a name
	gate     gate
	dialect  dialect
	disabled string                                  // the switch that is true for a server that isn't to be used
	enabled  string                                  // the switch that is false for one
	allow    string                                  // the list of the tools that a model may use
	deny     string                                  // the list of those that it may not
	globs    bool                                    // both are patterns
	noneAll  bool                                    // an empty allow means all
	rules    func(s *scan, server string) []RuleList // what the host's settings say of the tools of its servers
	cannot   []cannot
	off      refusal                          // why none of these is used
	given    map[string]string                // variables that the host itself sets
	option   func(name string) (string, bool) // of a plugin, as its user has set it
	access   bool                             // VS Code's settings may say that no servers are used

	// Of programs.
	command string
	array   bool   // command may be an array, with the arguments in it
	nested  bool   // command may be an object with path, args and env
	env     string // the variables
	envFile string // a file of further variables
	nullEnv bool   // a variable that is null is left out
	forward string // names of variables of ours that are handed on, if they are set
	keyring string // names of variables whose values are ours, or in the host's keyring
	cwd     string

	// Of remote servers.
	urls       []urlMember
	sockets    bool   // a url may name a Unix socket, unix:///run/s.sock, and a path on it behind #
	typedURL   bool   // an entry with a url and without a type is skipped as invalid
	programs   bool   // the host knows no remote servers
	headers    string // with / between levels
	envHeaders string // header → the variable of ours that holds its value
	helper     string // headersHelper
	bearerEnv  string
	apiKey     string // sent as a bearer token
	oauth      string // an object, in this host's words
	oauthWords oauthWords
	scopes     string // beside oauth
	resource   string // beside oauth
	extensions bool   // entries with neither a command nor a url are settings of extensions
	kinds      map[string]refusal
}

// urlMember is a member that holds a URL, and what it means where no type is given.
type urlMember struct {
	name      string
	transport Transport
}

// oauthWords are a host's names for what it says of a login.
type oauthWords struct{ clientID, clientSecret, scopes, port, metadata, switchedOn string }

// cannot is a member of an entry that the host heeds and the bridge can't.
type cannot struct {
	key     string
	refusal refusal
}

// gate is which servers of a source the host wants its user's approval for, and where that is written.
type gate int

const (
	open         gate = iota // none: the user wrote the file
	asked                    // .mcp.json: Claude Code asks, and writes the answer where policy finds it
	unknown                  // the host asks, and keeps the answer where it can't be read
	unasked                  // the host doesn't ask, but what a project brings along is not for the bridge to start unasked
	codexTrust               // Codex uses it in a project that its own file calls trusted
	copilotTrust             // Copilot CLI uses it in a folder that is trusted
	geminiTrust              // Gemini CLI uses it in a folder that is trusted, as it does the user's own
)
