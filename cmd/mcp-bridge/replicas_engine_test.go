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
// and where there is nginx, through docs/http.md's, which does so for clients that know nothing of
// it.
func TestReplicasOnEngine(t *testing.T) {
	needEngine(t)
	replicas := map[string]*overHTTP{}
	ids := map[string]string{}
	for _, name := range []string{"west", "east"} {
		l := listen(t, with(command(t, nil), "MCP_BRIDGE_REPLICA="+name, "MCP_BRIDGE_TOOLS=all"))
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

// throughNginx returns bridges named west and east behind nginx as docs/http.md configures it.
func throughNginx(t *testing.T, replicas map[string]*overHTTP) *overHTTP {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if nginx, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Skip("there is no nginx")
		}
	}
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "http.md"))
	must(t, err)
	_, rest, _ := strings.Cut(string(docs), "```nginx\n")
	config, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/http.md has no configuration of nginx")
	}
	at := func(name string) string {
		u, err := url.Parse(replicas[name].url)
		must(t, err)
		return u.Host
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := socket.Addr().String()
	must(t, socket.Close())
	config = strings.NewReplacer("10.0.0.1:7878", at("west"), "10.0.0.2:7878", at("east"),
		"server {\n", "server {\n    listen "+addr+";\n").Replace(config)
	dir := t.TempDir()
	var temporary strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	file := filepath.Join(dir, "nginx.conf")
	must(t, os.WriteFile(file, []byte("daemon off;\nmaster_process off;\n"+
		"pid "+filepath.Join(dir, "pid")+";\nevents {}\nhttp {\naccess_log off;\n"+
		temporary.String()+config+"}\n"), 0o600))
	cmd := exec.Command(nginx, "-e", "stderr", "-p", dir, "-c", file)
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
	return &overHTTP{t: t, url: "http://" + addr + "/mcp"}
}
