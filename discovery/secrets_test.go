package discovery

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

const ownFile = "/home/u/.config/mcp/servers/s.json"

// secretive is a user who has set the secrets of some names.
func secretive(files tree, vars []string, names ...string) (fstest.MapFS, Env) {
	all, env := maps.Clone(files), linux(vars...)
	env.SecretFile = func(name string) string { return "/home/u/.local/state/secrets/" + name }
	for _, name := range names {
		all[env.SecretFile(name)] = "{}"
	}
	return all.fs(), env
}

// reveal returns the servers as they are started, with secrets that are their names in capitals.
func reveal(t *testing.T, c Catalog) Catalog {
	t.Helper()
	for i, s := range c.Servers {
		var err error
		c.Servers[i], _, err = s.Reveal(func(name string) (string, error) { return strings.ToUpper(name), nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestSecretsInPlace(t *testing.T) {
	const missing = "s: its env.A asks for the secret b, which is not set"
	const nowhere = " asks for the secret a, which only its arguments, headers, url and those variables " +
		"are given that don't decide which code is run"
	const elsewhere = " asks for the secret a, which only a file of mcp-bridge's own directory of servers " +
		"is given"
	for _, tt := range []struct {
		name, file, entry string
		servers, problems []string
	}{
		{"a variable", ownFile, `{"command": "x", "env": {"A": "${secret:a}"}}`, []string{"s: x A=A"}, nil},
		{"beside other text and references", ownFile,
			`{"command": "x", "args": ["-${V}-${secret:a}/${secret:a.b-c}${V}"]}`,
			[]string{"s: x -value-A/A.B-Cvalue"}, nil},
		{"headers and a query", ownFile,
			`{"url": "https://h/x?k=${secret:a}", "headers": {"Authorization": "Bearer ${secret:a}"}}`,
			[]string{"s: http https://h/x?k=A Authorization: Bearer A " + fmt.Sprintf("%+v", OAuth{Off: true})}, nil},
		{"one that isn't set", ownFile, `{"command": "x", "env": {"A": "${secret:b}"}}`, nil, []string{missing}},
		{"a variable that asks for one", ownFile, `{"command": "x", "args": ["${ASKS}", "${secret:a}"]}`,
			[]string{"s: x ${secret:a} A"}, nil},
		{"a file of variables that asks for one", ownFile, `{"command": "x", "envFile": "/w/p/.env"}`,
			[]string{"s: x B=${secret:a}"}, nil},
		{"a command", ownFile, `{"command": "${secret:a}"}`, nil, []string{"s: its command" + nowhere}},
		{"a directory", ownFile, `{"command": "x", "cwd": "/${secret:a}"}`, nil, []string{"s: its cwd" + nowhere}},
		{"what decides which code is run", ownFile, `{"command": "x", "env": {"NODE_OPTIONS": "${secret:a}"}}`, nil,
			[]string{"s: its env.NODE_OPTIONS" + nowhere}},
		{"no name", ownFile, `{"command": "x", "args": ["${secret:../a}"]}`, nil,
			[]string{"s: its args[0] asks for a secret by a name that none can have"}},
		{"a host", ownFile, `{"url": "https://${secret:a}/"}`, nil, []string{"s: its url is not one"}},
		{"the file that other programs write too", "/home/u/.config/mcp/mcp.json",
			`{"command": "x", "env": {"A": "${secret:a}"}}`, nil, []string{"s: its env.A" + elsewhere}},
		{"a file that is listed", "/w/p/listed.json", `{"command": "x", "env": {"A": "${secret:a}"}}`, nil,
			[]string{"s: its env.A" + elsewhere}},
		{"a host's file, to which it is plain text", "/home/u/.codex/config.toml", "",
			[]string{"s: x A=${secret:a}"},
			nil},
		{"a host with references of that kind", "/home/u/.cursor/mcp.json",
			`{"command": "x", "env": {"A": "${secret:a}"}}`, nil,
			[]string{"s: its env.A asks for ${secret}, which only Cursor can fill in"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := `{"mcpServers": {"s": ` + tt.entry + `}}`
			if tt.entry == "" {
				text = "[mcp_servers.s]\ncommand = \"x\"\nenv = { A = \"${secret:a}\" }\n"
			}
			fsys, env := secretive(tree{tt.file: text, "/w/p/.env": "B=${secret:a}"},
				[]string{"V=value", "ASKS=${secret:a}"}, "a", "a.b-c")
			env.ConfigPaths = []string{"/w/p/listed.json"}
			c := Scan(fsys, env)
			c.Problems = slices.DeleteFunc(c.Problems, func(p Problem) bool { return p.Server == "" })
			check(t, reveal(t, c), tt.servers, tt.problems)
		})
	}
}

// TestSecretIsNoPartOfAServer: what a server is named by, and what is told of it, doesn't depend on
// a secret's value, and a server is another one when it asks for another secret.
func TestSecretIsNoPartOfAServer(t *testing.T) {
	scan := func(secret string, set time.Time) Server {
		fsys, env := secretive(tree{ownFile: `{"mcpServers": {"s": {"command": "x", "env": {"API_KEY": "${secret:` +
			secret + `}"}}}}`}, nil, "a", "b")
		fsys["home/u/.local/state/secrets/a"].ModTime = set
		return Scan(fsys, env).Servers[0]
	}
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	first, later, other := scan("a", now), scan("a", now.Add(time.Hour)), scan("b", now)
	if first.ID() != later.ID() || first.Identity() != later.Identity() {
		t.Error("it is another server once the secret is set again")
	}
	if slices.Equal(first.Secrets, later.Secrets) {
		t.Error("that the secret was set again isn't seen")
	}
	if first.ID() == other.ID() || first.Identity() == other.Identity() {
		t.Error("it is the same server with another secret")
	}
	literal := Scan(tree{"/home/u/.codex/config.toml": "[mcp_servers.s]\ncommand = \"x\"\n" +
		"env = { API_KEY = \"${secret:a}\" }\n"}.fs(), linux()).Servers[0]
	if literal.Env["API_KEY"] != "${secret:a}" || literal.Identity() == first.Identity() ||
		literal.ID() == first.ID() {
		t.Error("a yes to a server that has the text alone is one to a server that is given the secret")
	}
	want := "\nVariable \"API_KEY\": filled in for \"${secret:a}\"\nSecret of yours that it is given: \"a\""
	if told := first.Describe(); !strings.HasSuffix(told, want) {
		t.Errorf("the user is told\n%s", told)
	}
	revealed, values, err := first.Reveal(func(string) (string, error) { return "hunter2", nil })
	if err != nil || revealed.Env["API_KEY"] != "hunter2" || !slices.Equal(values, []string{"hunter2"}) {
		t.Errorf("revealed: %v, %q, %v", revealed.Env, values, err)
	}
	if first.Env["API_KEY"] != "${secret:a}" {
		t.Error("the server that was found has the secret")
	}
}

// TestRefusedSecrets: a value that can't stand in its place starts nothing, and no error has it.
func TestRefusedSecrets(t *testing.T) {
	for _, tt := range []struct{ name, entry, value, want string }{
		{"a header of two lines", `{"url": "https://h/", "headers": {"A": "${secret:a}"}}`, "hunter2\nX: y",
			"its secret a has a line break in it, with which it can't be sent; type: mcp-bridge secret set a"},
		{"a NUL", `{"command": "x", "args": ["${secret:a}"]}`, "hunter2\x00",
			"its secret a has a NUL character in it"},
		{"one that can't be read", `{"command": "x", "args": ["${secret:a}"]}`, "", "its secret a: locked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys, env := secretive(tree{ownFile: `{"mcpServers": {"s": ` + tt.entry + `}}`}, nil, "a")
			_, _, err := Scan(fsys, env).Servers[0].Reveal(func(string) (string, error) {
				if tt.value == "" {
					return "", errors.New("locked")
				}
				return tt.value, nil
			})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") ||
				tt.value == "" && err.Error() != tt.want { // setting it again would not help
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestMovedSecret: a server that is used from the bridge's own file isn't told as disabled because
// its host, where adopt has switched it off, still has a secret of it in plain text.
func TestMovedSecret(t *testing.T) {
	const disabled = "s: it is disabled there"
	for _, tt := range []struct {
		name, own, host string
		problems        []string
	}{
		{"a variable", `"command": "x", "env": {"A": "${secret:a}", "B": "b"}`,
			`"command": "x", "env": {"A": "hunter2", "B": "b"}`, nil},
		{"beside other text", `"url": "https://h/?k=${secret:a}&l=${secret:b}",
			"headers": {"Authorization": "Bearer ${secret:a}"}`,
			`"url": "https://h/?k=1&l=2", "headers": {"Authorization": "Bearer 1"}`, nil},
		{"another server", `"command": "x", "env": {"A": "${secret:a}"}`, `"command": "y", "env": {"A": "hunter2"}`,
			[]string{disabled}},
		{"another host", `"url": "https://h/?k=${secret:a}"`, `"url": "https://i/?k=hunter2"`, []string{disabled}},
		{"nothing there", `"command": "x", "env": {"A": "${secret:a}"}`, `"command": "x"`, []string{disabled}},
		{"another text between two", `"url": "https://h/${secret:a}/x/${secret:b}"`, `"url": "https://h/1/y/2"`,
			[]string{disabled}},
		{"another text there", `"command": "x", "args": ["--key=${secret:a}"]`,
			`"command": "x", "args": ["--file=1"]`, []string{disabled}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys, env := secretive(tree{ownFile: `{"mcpServers": {"s": {` + tt.own + `}}}`,
				"/home/u/.config/zed/settings.json": `{"context_servers": {"s": {"enabled": false, ` + tt.host + `}}}`},
				nil, "a", "b")
			c := Scan(fsys, env)
			if _, problems := brief(c); len(c.Servers) != 1 || !slices.Equal(problems, tt.problems) {
				t.Errorf("servers %v, problems %q, want %q", c.Servers, problems, tt.problems)
			}
		})
	}
}

// TestMovedVariables: the same of a server whose variables Goose has in its keyring, or Codex hands
// on, whether they are set here or not.
func TestMovedVariables(t *testing.T) {
	const disabled = "s: it is disabled there"
	goose := func(entry string) tree {
		return tree{"/home/u/.config/goose/config.yaml": "extensions:\n" +
			"  s: {type: stdio, enabled: false, cmd: x, " + entry + "}\n"}
	}
	codex := func(entry string) tree {
		return tree{"/home/u/.codex/config.toml": "[mcp_servers.s]\ncommand = \"x\"\nenabled = false\n" + entry}
	}
	for _, tt := range []struct {
		name, env string
		host      tree
		problems  []string
	}{
		{"in the keyring", `"A": "${secret:a}", "B": "b"`, goose("env_keys: [A], envs: {B: b}"), nil},
		{"in the keyring, and empty", `"A": "${secret:a}"`, goose(`env_keys: [A], envs: {A: ""}`), nil},
		{"in the keyring, another text beside", `"A": "${secret:a}", "B": "b"`,
			goose("env_keys: [A], envs: {B: c}"), []string{disabled}},
		{"in the keyring, no secret here", `"A": "1"`, goose("env_keys: [A]"), []string{disabled}},
		{"in the keyring, one more", `"A": "${secret:a}"`, goose("env_keys: [A, B]"), []string{disabled}},
		{"handed on", `"A": "${A:-}"`, codex("env_vars = [\"A\"]\n"), nil},
		{"handed on beside a secret", `"A": "${A:-}", "B": "${secret:a}"`,
			codex("env_vars = [\"A\"]\nenv = { B = \"hunter2\" }\n"), nil},
		{"handed on, another text here", `"A": "1"`, codex("env_vars = [\"A\"]\n"), []string{disabled}},
	} {
		for what, vars := range map[string][]string{"": nil, ", set here": {"A=hunter2"}} {
			t.Run(tt.name+what, func(t *testing.T) {
				files := maps.Clone(tt.host)
				files[ownFile] = `{"mcpServers": {"s": {"command": "x", "env": {` + tt.env + `}}}}`
				fsys, env := secretive(files, vars, "a")
				c := Scan(fsys, env)
				if _, problems := brief(c); len(c.Servers) != 1 || !slices.Equal(problems, tt.problems) {
					t.Errorf("servers %v, problems %q, want %q", c.Servers, problems, tt.problems)
				}
			})
		}
	}
}
