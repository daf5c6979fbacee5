package discovery

// codexRequirements is what an administrator demands of Codex on a machine. What reaches it over the network or from a system's own
// management of devices can't be read from outside.
var codexRequirements = onWindows("/etc/codex/requirements.toml", "C:/ProgramData/OpenAI/Codex/requirements.toml")

// codexForbids says whether the administrator keeps a server of Codex's files back. Where the requirements list servers, Codex uses those
// alone, by their names and by what they are: the command without its arguments, or the URL.
func (s *scan) codexForbids(d definition) refusal {
	src := Source{codex, "requirements", s.places.expand(codexRequirements)[0]}
	f := s.load(src, false, false)
	if f.broken {
		return blindTo(codex, src)
	}
	if f.root == nil {
		return refusal{}
	}
	v := get(f.root, "mcp_servers")
	if v == nil {
		return refusal{}
	}
	list, ok := objectOf(v)
	if !ok {
		return blindTo(codex, src)
	}
	identity := objectIn(objectIn(list, d.Name), "identity")
	command, _ := stringOf(get(identity, "command"))
	url, _ := stringOf(get(identity, "url"))
	if d.Transport == Stdio && command != "" && command == d.Command || d.Transport != Stdio && url != "" && url == d.URL {
		return refusal{}
	}
	return refusal{"Codex's administrator doesn't allow it: mcp_servers of " + src.String() + " has none of this name that is the same", "ask the administrator"}
}
