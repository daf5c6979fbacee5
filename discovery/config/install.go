package config

// An Install is how a host takes the bridge's own entry. Everything else about its files is in the
// host's Files and Format.
type Install struct {
	ID      string   // what a user calls the host: claude-code
	Program string   // its command: where that is on PATH, the host is installed
	Marks   Paths    // where one of these is there, too; zero: the directory of the user's file
	User    []string // scopes of the Files that take the user's entries; the first that is there does
	Project string   // the scope of the File that takes a project's; empty: none does
	New     Paths    // the user's file, if it is missing; zero: the first of the scopes'

	Key     func(root Object) []string // the path of the entries; nil: Format.Key
	Entry   Object                     // what an entry has beside command, arguments and variables
	Unasked Object                     // what it has besides, for the host to call the tools unasked
	Allow   []Preference               // what other settings say, for the same
	Command []string                   // the host's own command that adds the entry: see Words
	Next    string                     // what the user does there next

	// Extension says that the host may have the bridge as an extension, which no file of it tells.
	Extension bool

	// Off is the host's own switch for the server whose entry is at a path. Nil: it has none in a
	// file, and a server is switched off by taking its entry out.
	Off func(entry []string) Preference

	Sent Sent // how the model gets the servers' definitions
}

// Sent is how a host changes the definitions of tools before its model gets them. The zero value:
// not so that it counts.
type Sent struct {
	PerTool int    // tokens that it adds to each tool
	Without string // a member of schemas that it leaves out

	// Search is what announces tools by their names alone, a line each, to a model that then looks
	// for their definitions. It is empty where all definitions are sent.
	Search    string
	SearchOff string // the setting with which all are sent
}

// Whole returns how a host sends definitions with its search switched off.
func (s Sent) Whole() Sent {
	s.Search, s.SearchOff = "", ""
	return s
}

// A Preference is one setting of a host.
type Preference struct {
	Paths Paths // zero: the file of the entry
	Path  []string
	Value Value
	Add   bool // Value is one more element of a list
}

// Words returns the host's own command, with {command} and {env} filled in, and {json} for the
// entry as an object with its name. Without variables the word before {env} is left out too.
func (in *Install) Words(command, env []string, json string) (words []string) {
	for i, w := range in.Command {
		switch w {
		case "{command}":
			words = append(words, command...)
		case "{json}":
			words = append(words, json)
		case "{env}":
			for j, e := range env {
				if j > 0 {
					words = append(words, in.Command[i-1])
				}
				words = append(words, e)
			}
			if len(env) == 0 {
				words = words[:len(words)-1]
			}
		default:
			words = append(words, w)
		}
	}
	return words
}
