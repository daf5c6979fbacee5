package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// overHTTP is a bridge that serves over HTTP.
type overHTTP struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	stderr string
}

var listensAt = regexp.MustCompile(`msg=listening url=(\S+)`)

// serveHTTP starts a bridge on a free port of the loopback address until the end of the test.
func serveHTTP(t *testing.T, cmd *exec.Cmd) *overHTTP {
	t.Helper()
	cmd.Args = append(cmd.Args, "serve", "--http", "127.0.0.1:0")
	return listenTo(t, cmd)
}

// listenTo starts a command that listens until the end of the test.
func listenTo(t *testing.T, cmd *exec.Cmd) *overHTTP {
	t.Helper()
	log := logFile(t)
	cmd.Stderr = log
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	l := &overHTTP{t: t, cmd: cmd, stderr: log.Name()}
	withinTime(t, time.Minute, "the bridge listens", func() bool {
		found := listensAt.FindStringSubmatch(l.said())
		if found != nil {
			l.url = found[1]
		}
		select {
		case <-ended:
			t.Fatalf("the bridge has ended: %s", l.said())
		default:
		}
		return found != nil
	})
	return l
}

// said returns the log.
func (l *overHTTP) said() string {
	l.t.Helper()
	data, err := os.ReadFile(l.stderr)
	must(l.t, err)
	return string(data)
}

// post sends a request of 2026-07-28 with a token, or none.
func (l *overHTTP) post(token, method, name, params string) (status int, answer string, header http.Header) {
	l.t.Helper()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, meta)
	r, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, l.url, strings.NewReader(body))
	must(l.t, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	must(l.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(l.t, err)
	if _, data, streamed := bytes.Cut(text, []byte("\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,")); streamed {
		text = data
	}
	return res.StatusCode, string(text), res.Header
}

// python runs code with a token, and returns the answer.
func (l *overHTTP) python(token, code string) string {
	l.t.Helper()
	status, answer, _ := l.post(token, "tools/call", "run_python",
		fmt.Sprintf(`"name":"run_python","arguments":{"code":%q},`, code))
	if status != http.StatusOK {
		l.t.Errorf("a run is answered with %d: %s", status, answer)
	}
	return answer
}

// token runs a command about tokens.
func token(t *testing.T, vars []string, args ...string) string {
	t.Helper()
	cmd := with(command(t, nil, append([]string{"token"}, args...)...), vars...)
	out, err := cmd.Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

// TestTokens: who has a token is let in until it is revoked, without a restart.
func TestTokens(t *testing.T) {
	vars := []string{"MCP_BRIDGE_HTTP_TOKENS=" + filepath.Join(t.TempDir(), "tokens")}
	l := serveHTTP(t, with(command(t, nil), vars...))
	if !strings.Contains(l.said(), "no token was made yet") ||
		!strings.Contains(l.said(), "clients=\"who has a token") {
		t.Errorf("the log is %s", l.said())
	}
	alice := token(t, vars, "add", "alice")
	for _, c := range []struct {
		token, challenge string
		status           int
	}{
		{"", `Bearer realm="mcp-bridge"`, http.StatusUnauthorized},
		{alice + "x", `Bearer realm="mcp-bridge", error="invalid_token"`, http.StatusUnauthorized},
		{alice, "", http.StatusOK},
	} {
		status, answer, header := l.post(c.token, "tools/list", "", "")
		if status != c.status || header.Get("WWW-Authenticate") != c.challenge {
			t.Errorf("with the token %q: %d, %q, %.200s", c.token, status, header.Get("WWW-Authenticate"), answer)
		}
	}
	token(t, vars, "revoke", "alice")
	if status, _, _ := l.post(alice, "tools/list", "", ""); status != http.StatusUnauthorized {
		t.Errorf("with a revoked token: %d", status)
	}
	if res, err := http.Get(strings.TrimSuffix(l.url, "/mcp") +
		"/.well-known/oauth-protected-resource"); err != nil {
		t.Error(err)
	} else if res.Body.Close(); res.StatusCode != http.StatusNotFound {
		t.Errorf("metadata without an issuer: %d", res.StatusCode)
	}
	if strings.Contains(l.said(), alice) {
		t.Error("the log has the token")
	}
}

// TestFirstToken: a bridge that asked for no token asks for one once the first is made, where it is
// kept without a setting, and goes on to when the file of tokens is gone.
func TestFirstToken(t *testing.T) {
	state := t.TempDir()
	vars := []string{"XDG_STATE_HOME=" + state}
	l := serveHTTP(t, with(command(t, nil), vars...))
	status := func(token string) int {
		t.Helper()
		status, _, _ := l.post(token, "tools/list", "", "")
		return status
	}
	if got := status(""); got != http.StatusOK {
		t.Fatalf("before there is a token: %d", got)
	}
	alice := token(t, vars, "add", "alice")
	if with, without := status(alice), status(""); with != http.StatusOK || without != http.StatusUnauthorized {
		t.Errorf("once there is a token: %d with it, %d without", with, without)
	}
	for _, want := range []string{`clients="all programs of this machine"`, "from now on each request needs one",
		"a request was refused"} {
		if strings.Count(l.said(), want) != 1 {
			t.Errorf("not once in the log: %s: %s", want, l.said())
		}
	}
	must(t, os.Remove(filepath.Join(state, "mcp-bridge", "http-tokens")))
	if with, without := status(alice), status(""); with != http.StatusUnauthorized ||
		without != http.StatusUnauthorized {
		t.Errorf("once the file is gone: %d with the token, %d without", with, without)
	}
}

// TestHeldOverHTTP: a server that is held when the bridge starts is used once it is approved,
// without a restart.
func TestHeldOverHTTP(t *testing.T) {
	state := t.TempDir()
	record := filepath.Join(state, "mcp-bridge", "approved.json")
	must(t, os.MkdirAll(filepath.Dir(record), 0o700))
	// code was run all the time
	must(t, os.WriteFile(record, []byte(`{"serving":"2020-01-01T00:00:00Z"}`), 0o600))
	cmd := with(command(t, map[string]entry{"late": {Command: "one"}}), "XDG_STATE_HOME="+state)
	l := serveHTTP(t, cmd)
	if said := l.said(); !strings.Contains(said, "servers=[late]") {
		t.Errorf("it isn't held: %s", said)
	}
	approve := command(t, nil, "servers", "approve", "late", "--yes")
	approve.Env = cmd.Env
	if out, err := approve.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	withinTime(t, time.Minute, "it is used", func() bool {
		_, tools, _ := l.post("", "tools/list", "", "")
		return strings.Contains(tools, "There are: late")
	})
}

// TestIssuer: who has a JWT for this bridge of the issuer that it trusts is let in.
func TestIssuer(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	key := jose.JSONWebKey{Key: private, KeyID: "k", Algorithm: string(jose.ES256)}
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, issuer.URL, issuer.URL+"/keys")
		case "/keys":
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key.Public()}})
		default:
			http.NotFound(w, r)
		}
	}))
	defer issuer.Close()
	const own = "https://bridge.example/mcp"
	l := serveHTTP(t, with(command(t, nil), "MCP_BRIDGE_HTTP_ISSUER="+issuer.URL,
		"MCP_BRIDGE_HTTP_AUDIENCE="+own))
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	must(t, err)
	const other = "https://elsewhere.example"
	for audience, want := range map[string]int{own: http.StatusOK, other: http.StatusUnauthorized} {
		token, err := jwt.Signed(signer).Claims(map[string]any{
			"iss": issuer.URL, "aud": audience, "sub": "alice", "exp": time.Now().Add(time.Hour).Unix(),
		}).Serialize()
		must(t, err)
		if status, answer, _ := l.post(token, "tools/list", "", ""); status != want {
			t.Errorf("for %s: %d, %s", audience, status, answer)
		}
	}
	status, _, header := l.post("", "tools/list", "", "")
	const path = "/.well-known/oauth-protected-resource/mcp"
	if status != http.StatusUnauthorized ||
		header.Get("WWW-Authenticate") != `Bearer resource_metadata="https://bridge.example`+path+`"` {
		t.Errorf("without a token: %d, %q", status, header.Get("WWW-Authenticate"))
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(l.url, "/mcp")+path,
		nil)
	must(t, err)
	r.Host = "bridge.example"                          // as a proxy hands it on
	r.Header.Set("Origin", "https://client.elsewhere") // of a client in a browser
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(text), `"resource":"`+own+`"`) ||
		!strings.Contains(string(text), issuer.URL) {
		t.Errorf("the metadata is %s, %v", text, err)
	}
	if got := res.Header.Get("Access-Control-Allow-Origin"); got != "*" {
		t.Errorf("pages of %q may read the metadata", got)
	}
}

// TestExposed: an address that others reach is not listened to without authentication and TLS.
func TestExposed(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	token(t, []string{"MCP_BRIDGE_HTTP_TOKENS=" + tokens}, "add", "alice")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	const loopback = "127.0.0.1:0"
	inHTTP := []string{"MCP_BRIDGE_HTTP_ISSUER=http://login.example",
		"MCP_BRIDGE_HTTP_AUDIENCE=https://b.example/mcp"}
	for name, c := range map[string]struct {
		vars, args []string
		want       string
	}{
		"no one says who they are": {nil, []string{"--http", "0.0.0.0:0"}, "all who do could run code"},
		"a proxy without tokens": {nil, []string{"--http", loopback, "--behind-proxy"},
			"have clients authenticate"},
		"tokens in plain text": {[]string{"MCP_BRIDGE_HTTP_TOKENS=" + tokens}, []string{"--http", "0.0.0.0:0"},
			"would cross the network unencrypted"},
		"one client's directories for all": {[]string{"MCP_BRIDGE_UPSTREAM_ROOTS=client"},
			[]string{"--http", loopback}, "clients share servers"},
		"a taken address": {nil, []string{"--http", taken.Addr().String()}, "perhaps another bridge"},
		"a host that isn't there": {nil, []string{"--http", "no-such-host.invalid:1"},
			"give an address of this machine"},
		"no certificate": {nil, []string{"--http", loopback, "--tls-cert=/no", "--tls-key=/no"},
			"--tls-key can't be used"},
		"an exposed file": {[]string{"MCP_BRIDGE_HTTP_TOKENS=" + exposed(t)}, []string{"--http", loopback},
			"others may read it"},
		"half an issuer":    {inHTTP[:1], []string{"--http", loopback}, "set together"},
		"an issuer in http": {inHTTP, []string{"--http", loopback}, "is no issuer"},
	} {
		cmd := with(command(t, nil, append([]string{"serve"}, c.args...)...), c.vars...)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}

// exposed is a file of tokens that others can read.
func exposed(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, os.Chmod(path, 0o644))
	return path
}

// TestOthersFiles: over HTTP the log warns of no file of a host, since those aren't used there. It
// says so where MCP_BRIDGE_CONFIG names no files, and warns of a broken one that it names.
func TestOthersFiles(t *testing.T) {
	home := t.TempDir()
	must(t, os.Mkdir(filepath.Join(home, ".claude"), 0o700))
	for _, name := range []string{".claude.json", ".claude/settings.json", "listed.json"} {
		must(t, os.WriteFile(filepath.Join(home, name), []byte("{"), 0o600))
	}
	vars := inHome(home)
	const broken, none = "a configuration file can't be used",
		"MCP_BRIDGE_CONFIG is not set, so code has no servers"
	log := serveHTTP(t, with(command(t, nil), vars...)).said()
	if strings.Contains(log, broken) || !strings.Contains(log, none) {
		t.Errorf("without MCP_BRIDGE_CONFIG the log is %s", log)
	}
	vars = append(vars, "MCP_BRIDGE_CONFIG="+filepath.Join(home, "listed.json"))
	l := serveHTTP(t, with(command(t, nil), vars...))
	log = l.said()
	if !strings.Contains(log, "all clients act with the credentials") {
		t.Errorf("it isn't said whose credentials clients use: %s", log)
	}
	metrics, err := http.Get("http://" + hostOf(t, l.url) + "/metrics")
	must(t, err)
	metrics.Body.Close()
	if metrics.StatusCode != http.StatusNotFound {
		t.Errorf("/metrics without --metrics: %d", metrics.StatusCode)
	}
	if strings.Count(log, broken) != 1 || strings.Contains(log, none) {
		t.Errorf("with MCP_BRIDGE_CONFIG the log is %s", log)
	}
}

// TestTeamOnEngine has two principals run code in real containers: each reads its own runs alone,
// has a server that keeps state for itself, and stands in the audit.
func TestTeamOnEngine(t *testing.T) {
	needEngine(t)
	dir := t.TempDir()
	vars := []string{"MCP_BRIDGE_HTTP_TOKENS=" + filepath.Join(dir, "tokens"),
		"MCP_BRIDGE_AUDIT=" + filepath.Join(dir, "audit")}
	alice, bob := token(t, vars, "add", "alice"), token(t, vars, "add", "bob")
	own := shop(t)
	own.Isolate, own.Env["OWN"] = true, "1"
	l := serveHTTP(t, with(command(t, map[string]entry{"own": own, "shared": shop(t)}), vars...))
	run := regexp.MustCompile(`mcp-bridge://runs/(\w+)/`).FindStringSubmatch(
		l.python(alice, "save_artifact('secret.txt', b'what only alice may read')"))
	if run == nil {
		t.Fatalf("alice's file isn't kept: %s", l.said())
	}
	uri := "mcp-bridge://runs/" + run[1] + "/secret.txt"
	for who, want := range map[string]bool{alice: true, bob: false} {
		_, answer, _ := l.post(who, "resources/read", uri, fmt.Sprintf(`"uri":%q,`, uri))
		if strings.Contains(answer, "only alice") != want {
			t.Errorf("%s reads %s", map[bool]string{true: "alice", false: "bob"}[want], answer)
		}
	}
	for _, who := range []string{alice, bob} {
		for range 2 {
			if got := l.python(who, "print(mcp_own.add(a=1, b=2), mcp_shared.add(a=1, b=2))"); strings.Count(got,
				"3") < 2 {
				t.Errorf("the servers answer %s", got)
			}
		}
	}
	for line, want := range map[string]int{"server=own .* principal=alice": 1, "server=own .* principal=bob": 1,
		"server=own ": 2, "server=shared ": 1} {
		all := regexp.MustCompile(`msg="server started" `+line).FindAllString(l.said(), -1)
		if len(all) != want {
			t.Errorf("the log has %q, want %d", all, want)
		}
	}
	audit, err := os.ReadFile(filepath.Join(dir, "audit"))
	must(t, err)
	for _, name := range []string{"alice", "bob"} {
		if n := strings.Count(string(audit), `"principal":"`+name+`"`); n < 4 {
			t.Errorf("%s stands in %d lines of the audit:\n%s", name, n, audit)
		}
		if !strings.Contains(l.said(), "principal="+name) {
			t.Errorf("%s doesn't stand in the log", name)
		}
	}
}
