package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var ofReplica = regexp.MustCompile(`\[sandbox ([a-z0-9]{4}\.(west|east)): new\]`)

// TestReplicasOnEngine: sandboxes of two bridges are used through either, by what the answer says,
// and through nginx as docs/http.md configures it, for clients that know nothing of it.
func TestReplicasOnEngine(t *testing.T) {
	needEngine(t)
	replicas := map[string]*overHTTP{}
	ids := map[string]string{}
	for _, name := range []string{"west", "east"} {
		l := serveHTTP(t, with(command(t, nil), "MCP_BRIDGE_REPLICA="+name, "MCP_BRIDGE_TOOLS=all"))
		replicas[name] = l
		status, answer, _ := l.in("new", "import os; n = 41; print(os.getpid())")
		begun := ofReplica.FindStringSubmatch(answer)
		if status != http.StatusOK || begun == nil || begun[2] != name {
			t.Fatalf("no sandbox was begun: %d, %s", status, answer)
		}
		ids[name] = begun[1]
	}
	for name, l := range replicas {
		for of, id := range ids {
			status, answer, header := l.in(id, "n += 1; print('n is', n)")
			switch {
			case of == name && (status != http.StatusOK || !strings.Contains(answer, "n is 42")):
				t.Errorf("%s of its own: %d, %s", name, status, answer)
			case of != name && (status != http.StatusMisdirectedRequest || header.Get("Mcp-Bridge-Replica") != of):
				t.Errorf("%s of %s's: %d, %s", name, of, status, answer)
			}
		}
	}
	proxy := throughNginx(t, replicas)
	for n := 43; n < 47; n++ { // nginx takes turns
		for _, id := range ids {
			status, answer, _ := proxy.in(id, "n += 1; print('n is', n)")
			if want := fmt.Sprint("n is ", n); status != http.StatusOK || !strings.Contains(answer, want) {
				t.Errorf("%s through nginx: %d, %s, want %s", id, status, answer, want)
			}
		}
	}
	if status, answer, _ := proxy.in("k7f2.north", "1"); status != http.StatusMisdirectedRequest ||
		!strings.Contains(answer, "of the replica north") {
		t.Errorf("a replica that there isn't: %d, %s", status, answer)
	}
	for range 4 {
		v := &visitor{t: t, url: proxy.url}
		v.begin()
		for range 3 {
			if answer, _ := v.post("ping", nil); answer.Error != nil {
				t.Errorf("the session %s: %+v", v.session, answer.Error)
			}
		}
	}
}

// in runs code in a sandbox, or in a new one.
func (l *overHTTP) in(sandbox, code string) (status int, answer string, header http.Header) {
	l.t.Helper()
	return l.post("", "tools/call", "run_python",
		fmt.Sprintf(`"name":"run_python","arguments":{"code":%q,"sandbox":%q,"timeout":60},`, code, sandbox))
}

// TestNginxOnEngine: a bridge is used through nginx by the few lines of docs/http.md, which hand on
// the name by which clients come, and who they are.
func TestNginxOnEngine(t *testing.T) {
	needEngine(t)
	vars := []string{"MCP_BRIDGE_HTTP_TOKENS=" + filepath.Join(t.TempDir(), "tokens")}
	alice := token(t, vars, "add", "alice")
	l := listenTo(t, with(command(t, nil, "serve", "--http", "127.0.0.1:0", "--behind-proxy"), vars...))
	_, rest, _ := strings.Cut(docsOf(t, "http.md"), "    location / {\n")
	location, _, found := strings.Cut(rest, "    }\n")
	if !found || !strings.Contains(location, "proxy_pass http://127.0.0.1:7878;") {
		t.Fatal("docs/http.md has no configuration of nginx for one bridge")
	}
	location = strings.Replace(location, "127.0.0.1:7878", hostOf(t, l.url), 1)
	proxy := &overHTTP{t: t, url: startNginx(t, "server {\nlocation / {\n"+location+"}\n}\n")}
	if answer := proxy.python(alice, "print(6 * 7)"); !strings.Contains(answer, "42") {
		t.Errorf("through nginx: %s", answer)
	}
	if status, answer, _ := proxy.post("", "tools/list", "", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d, %s", status, answer)
	}
	if !strings.Contains(l.said(), "forwarded_for=127.0.0.1") {
		t.Errorf("the log has %s", l.said())
	}
}

// docsOf returns a page of docs.
func docsOf(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	must(t, err)
	return string(text)
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	return u.Host
}

// throughNginx returns bridges named west and east behind nginx as docs/http.md configures it.
func throughNginx(t *testing.T, replicas map[string]*overHTTP) *overHTTP {
	t.Helper()
	_, rest, _ := strings.Cut(docsOf(t, "http.md"), "```nginx\n")
	config, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/http.md has no configuration of nginx")
	}
	config = strings.NewReplacer("10.0.0.1:7878", hostOf(t, replicas["west"].url),
		"10.0.0.2:7878", hostOf(t, replicas["east"].url)).Replace(config)
	return &overHTTP{t: t, url: startNginx(t, config)}
}

// nginxProgram returns the one that is installed, or that scripts/setup has unpacked.
func nginxProgram(t *testing.T) string {
	t.Helper()
	unpacked, err := filepath.Abs("../../.cache/nginx/usr/sbin/nginx")
	must(t, err)
	for _, name := range []string{"nginx", "/usr/sbin/nginx", unpacked} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	t.Fatal("there is no nginx: scripts/setup test has it")
	return ""
}

// startNginx has nginx serve as config says, whose one server listens to no address yet, until the
// end of the test. It returns the URL of MCP there.
func startNginx(t *testing.T, config string) string {
	t.Helper()
	program := nginxProgram(t)
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := socket.Addr().String()
	must(t, socket.Close())
	config = strings.Replace(config, "server {\n", "server {\n    listen "+addr+";\n", 1)
	dir := t.TempDir()
	var main strings.Builder
	fmt.Fprintf(&main, "daemon off;\nmaster_process off;\npid %s;\nevents {}\nhttp {\naccess_log off;\n",
		filepath.Join(dir, "pid"))
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&main, "%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	file := filepath.Join(dir, "nginx.conf")
	must(t, os.WriteFile(file, []byte(main.String()+config+"}\n"), 0o600))
	cmd := exec.Command(program, "-e", "stderr", "-p", dir, "-c", file)
	cmd.Stderr = logFile(t)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	within(t, "nginx listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "http://" + addr + "/mcp"
}
