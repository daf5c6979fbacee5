package discovery

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// A Place is a file in which a host's servers are defined, and one that defines the server s there.
type Place struct{ Host, Scope, Path, Text string }

// Places returns one for each file of each row of the table of sources, except those that other
// files name.
func Places(env Env, command string) (all []Place) {
	_, paths := opened(Root(), env)
	for _, r := range rows() {
		for _, p := range paths(r) {
			p = strings.Replace(p, "*", "s", 1)
			all = append(all, Place{r.host, r.Scope, p, r.example(p, "s", command, env.Dir)})
		}
	}
	return all
}

// example returns a file of the row that defines a server.
func (r row) example(p, name, command, dir string) string {
	entry := map[string]any{r.Format.Program.Command: command}
	if r.Format.Program.Array {
		entry = map[string]any{"type": "local", r.Format.Program.Command: []string{command}}
	}
	if r.host == "Goose" {
		entry["type"], entry["enabled"] = "stdio", true
	}
	if r.host == "Crush" {
		entry["type"] = "stdio"
	}
	var servers any = map[string]any{name: entry}
	if r.host == "Continue" {
		entry["name"] = name
		servers = []any{entry}
	}
	servers = map[string]any{r.Format.Key: servers}
	if r.Scope == config.LocalScope {
		servers = map[string]any{"projects": map[string]any{dir: servers}}
	}
	text, err := json.Marshal(servers)
	if err != nil {
		panic(err)
	}
	if path.Ext(p) == ".toml" {
		return "[mcp_servers." + name + "]\ncommand = '" + command + "'\n"
	}
	return string(text) // which is YAML too
}
