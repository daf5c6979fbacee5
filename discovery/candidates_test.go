package discovery

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// TestMovedEntriesMeanTheSame: of all hosts' files, as their documentation shows them, each entry
// that can be moved to a file of the bridge's own is the same server there once its secrets are
// set.
func TestMovedEntriesMeanTheSame(t *testing.T) {
	names, err := filepath.Glob("testdata/hosts/*.txt")
	if err != nil || len(names) < 40 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	moved := 0
	for _, name := range names {
		about, files := archive(t, name)
		env := envOf(t, about)
		for _, c := range Candidates(files.fs(), env) {
			if c.Problem != nil || c.Written.Source.Host == config.Own {
				continue
			}
			own, secrets, bad := c.Written.Move(env, c.Inputs)
			if bad.Refused() {
				t.Logf("%s: %s stays: %s", filepath.Base(name), c.Written.Name, bad.Reason)
				continue
			}
			moved++
			if c.Server.OAuth.Off {
				c.Server.OAuth = OAuth{Off: true} // what else is said of a login counts for nothing
			}
			is := inOwnFile(t, c, own, secrets, env, files)
			if !is.Same(c.Server) {
				t.Errorf("%s: %s is %q %+v, was %q %+v", name, own.JSON(), is, is, c.Server, c.Server)
			}
		}
	}
	if moved < 60 {
		t.Errorf("moved: %d", moved)
	}
}

// inOwnFile returns a server as it is started when its entry is in the bridge's own file, and its
// secrets are set.
func inOwnFile(t *testing.T, c Candidate, own config.OwnEntry, secrets []config.Asked, env Env,
	files tree) Server {
	t.Helper()
	file := ownFile
	if env.GOOS == "windows" {
		file = `C:\Users\u\.config\mcp\servers\s.json`
	}
	there := tree{"/set": "{}", `C:\set`: "{}",
		file: string(text.JSON(map[string]any{"mcpServers": map[string]any{c.Written.Name: own}}))}
	for _, p := range c.Server.Files { // what it takes values from
		if data, ok := files[p]; ok && p != c.Written.Source.Path {
			there[p] = data
		}
	}
	values := map[string]string{}
	for _, s := range secrets {
		_, variable, _ := strings.Cut(s.Name, ".")
		values[s.Name] = cmp.Or(s.Value(), env.Getenv(variable)) // as a host's keyring has it
	}
	env.SecretFile = func(string) string {
		if env.GOOS == "windows" {
			return `C:\set`
		}
		return "/set"
	}
	found := Scan(there.fs(), env)
	if len(found.Servers) != 1 {
		t.Errorf("%s is no longer an entry: %v", own.JSON(), found.Problems)
		return Server{}
	}
	is, _, err := found.Servers[0].Reveal(func(name string) (string, error) { return values[name], nil })
	if err != nil {
		t.Error(err)
	}
	return is
}

// TestMove: secrets leave the entry, inputs and keyrings become secrets, and references are those
// of the bridge's own files. What would mean something else there is refused.
func TestMove(t *testing.T) {
	const code, cursor, codex = "/home/u/.config/Code/User/mcp.json", "/home/u/.cursor/mcp.json",
		"/home/u/.codex/config.toml"
	vs := func(entry string) string {
		return `{"inputs": [{"id": "key", "type": "promptString", "description": "API key", "password": true}, ` +
			`{"id": "region", "type": "pickString", "options": ["eu", {"label": "US", "value": "us"}]}, ` +
			`{"id": "made", "type": "command", "command": "x"}], "servers": {"s": ` + entry + `}}`
	}
	plain := func(entry string) string { return `{"mcpServers": {"s": ` + entry + `}}` }
	for _, tt := range []struct{ name, file, text, want, secrets, refused string }{
		{"inputs", code, vs(`{"command": "x", "args": ["${input:region}"], "env": {"K": "a-${input:key}", "L": ` +
			`"${input:key}"}}`),
			`{"command":"x","args":["${secret:VS-Code.region}"],` +
				`"env":{"K":"a-${secret:VS-Code.key}","L":"${secret:VS-Code.key}"}}`,
			`VS-Code.key (API key) "", VS-Code.region (the input region (one of eu, us)) ""`, ""},
		{"an input that nothing is said of", code, vs(`{"url": "https://h/", "headers": {"X": "${input:other}"}}`),
			`{"type":"http","url":"https://h/","headers":{"X":"${secret:VS-Code.other}"}}`,
			`VS-Code.other (the input other) ""`, ""},
		{"an input that a command makes", code, vs(`{"command": "x", "args": ["${input:made}"]}`), "", "",
			"its args[0] asks for an input that a command of VS Code makes"},
		{"an input in the command", code, vs(`{"command": "${input:key}"}`), "", "",
			"its command has a secret in it, which the bridge's own files can't have there"},
		{"references", cursor, plain(`{"command": "${userHome}/x", "args": ["${env:A}${pathSeparator}b"], ` +
			`"envFile": "e"}`),
			`{"command":"/home/u/x","args":["${A}/b"],"envFile":"/home/u/.cursor/e"}`, "", ""},
		{"secrets in plain text", cursor, plain(`{"url": "https://h/", "headers": {"Authorization": "Bearer ` +
			`hunter2-hunter2", ` +
			`"X-Key": "hunter2-hunter3", "Accept": "something-long", "X-Token": "${env:T}"}}`),
			`{"type":"http","url":"https://h/","headers":{"Accept":"something-long",` +
				`"Authorization":"Bearer ${secret:s.Authorization}","X-Key":"${secret:s.X-Key}","X-Token":"${T}"}}`,
			`s.Authorization (Authorization of the server s) "hunter2-hunter2", ` +
				`s.X-Key (X-Key of the server s) "hunter2-hunter3"`, ""},
		{"secrets in arguments", cursor, plain(`{"command": "x", "args": ["-y", "--api-key", "hunter2-hunter2", ` +
			`"--port=80800808", "--token=hunter2-hunter3", "-e", "A_KEY=hunter2-hunter4", "Authorization: Bearer ` +
			`hunter2-hunter5", "pg://u:hunter2@h/d", "--password", "short", "--key", "/a/file.pem"]}`),
			`{"command":"x","args":["-y","--api-key","${secret:s.api-key}","--port=80800808",` +
				`"--token=${secret:s.token}","-e","A_KEY=${secret:s.A_KEY}",` +
				`"Authorization: Bearer ${secret:s.Authorization}","pg://u:${secret:s.password}@h/d",` +
				`"--password","short","--key","/a/file.pem"]}`,
			`s.A_KEY (A_KEY of the server s) "hunter2-hunter4", s.Authorization (Authorization of the server s) ` +
				`"hunter2-hunter5", s.api-key (api-key of the server s) "hunter2-hunter2", s.password (password of ` +
				`the server s) "hunter2", s.token (token of the server s) "hunter2-hunter3"`, ""},
		{"a secret in a URL", cursor, plain(`{"url": "https://h/mcp?a=1&apiKey=hunter2-hunter2&x=y"}`),
			`{"type":"http","url":"https://h/mcp?a=1\u0026apiKey=${secret:s.apiKey}\u0026x=y"}`,
			`s.apiKey (apiKey of the server s) "hunter2-hunter2"`, ""},
		{"secrets of names that are alike", cursor, plain(`{"command": "x", "env": {"A/KEY": "hunter2-1", "A ` +
			`KEY": "hunter2-2"}}`),
			"", "", "two of its secrets would have one name"},
		{"what only sounds like a secret", cursor, plain(`{"command": "x", "env": {"MAX_TOKENS": "123456789", ` +
			`"KEY_FILE": "/home/u/key.pem", "AUTH": "true", "GIT_CONFIG_KEY_0": "http.extraheader", "TOKEN_URL": ` +
			`"https://h/token", "PATH_KEY": "short"}}`),
			`{"command":"x","env":{"AUTH":"true","GIT_CONFIG_KEY_0":"http.extraheader",` +
				`"KEY_FILE":"/home/u/key.pem","MAX_TOKENS":"123456789","PATH_KEY":"short",` +
				`"TOKEN_URL":"https://h/token"}}`, "", ""},
		{"plain text that is a reference there", codex, "[mcp_servers.s]\ncommand = \"x\"\nargs = [\"${A}\"]\n",
			"", "",
			"its args[0] has a text such as ${…} that Codex takes as it stands, and the bridge's own files would " +
				"fill in"},
		{"plain text that is a secret there", codex, "[mcp_servers.s]\ncommand = \"x\"\nargs = " +
			"[\"${secret:a}\"]\n", "",
			"", "its args[0] has a text such as ${…} that Codex takes as it stands, and the bridge's own files " +
				"would fill in"},
		{"variables that are handed on", codex, "[mcp_servers.s]\ncommand = \"x\"\nenv_vars = [\"A\"]\n",
			`{"command":"x","env":{"A":"${A:-}"}}`, "", ""},
		{"headers of variables", codex, "[mcp_servers.s]\nurl = \"https://h/\"\nbearer_token_env_var = \"B\"\n" +
			"env_http_headers = { X = \"A\" }\n",
			`{"type":"http","url":"https://h/","headers":{"X":"${A}"},"bearerTokenEnv":"B"}`, "", ""},
		{"a keyring", "/home/u/.config/goose/config.yaml",
			"extensions:\n  s:\n    type: stdio\n    cmd: x\n    args: []\n    env_keys: [K]\n    enabled: true\n",
			`{"command":"x","env":{"K":"${secret:s.K}"}}`, `s.K (K of the server s) ""`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := Candidates(tree{tt.file: tt.text}.fs(), linux())
			if len(all) != 1 {
				t.Fatalf("%d candidates", len(all))
			}
			own, secrets, bad := all[0].Written.Move(linux(), all[0].Inputs)
			if bad.Reason != tt.refused {
				t.Errorf("refused: %s", bad.Reason)
			}
			if bad.Refused() {
				return
			}
			if got := string(own.JSON()); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			var said []string
			for _, s := range secrets {
				said = append(said, fmt.Sprintf("%s (%s) %q", s.Name, s.About, s.Value()))
			}
			if got := strings.Join(said, ", "); got != tt.secrets {
				t.Errorf("secrets %s\nwant    %s", got, tt.secrets)
			}
			if shown := fmt.Sprintf("%v %+v %#v %s", secrets, secrets, secrets, own.JSON()); strings.Contains(shown,
				"hunter2") {
				t.Errorf("shown: %s", shown)
			}
			if tt.secrets != "" && own.URL == "" && !strings.Contains(string(own.Shown().JSON()), "${secret:") {
				t.Errorf("shown: %s", own.Shown().JSON())
			}
		})
	}
}
