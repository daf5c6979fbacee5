package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestMask(t *testing.T) {
	type env = map[string]string
	for _, tt := range []struct {
		name string
		env  env
		args []string
		text string
		want string // "" for text itself
	}{
		{name: "user and password of a positional argument",
			args: []string{"postgresql://bob:hunter2@db:5432/shop"},
			text: "can't open postgresql://bob:hunter2@db:5432/shop as bob:hunter2: hunter2 is wrong",
			want: "can't open *** as ***: *** is wrong"},
		{name: "encoded", args: []string{"--db=mysql://bob:p%40ss%2Fw@db/x"}, text: "p%40ss%2Fw p@ss/w",
			want: "*** ***"},
		{name: "unencoded", args: []string{"mysql://bob:p@ss/w%rd@db/x"}, text: "no p@ss/w%rd", want: "no ***"},
		{name: "a token for a user", env: env{"REPO": "https://ghp_12345@github.com/a/b"}, text: "ghp_12345",
			want: "***"},
		{name: "pass", env: env{"DB_PASS": "abcd", "PGPASSWORD": "/x/y"}, text: "abcd /x/y", want: "*** ***"},
		{name: "a webhook", env: env{"HOOK": "https://host/SECRETPATH"},
			text: "POST https://host/SECRETPATH: no /SECRETPATH", want: "POST ***: no /***"},
		{name: "a webhook as an argument", args: []string{"https://hooks.example/services/T0/abc123def456"},
			text: "abc123def456 in services", want: "*** in services"},
		{name: "a query", args: []string{"https://host/sse?key=abcdefgh&v=2"},
			text: "https://host/sse?key=abcdefgh&v=2 abcdefgh", want: "*** ***"},
		{name: "a variable as an argument", args: []string{"run", "-e", "API_KEY=abcdef", "image"},
			text: "abcdef image run", want: "*** image run"},
		{name: "a header", args: []string{"--header", "Authorization: Bearer abc.def"}, text: "abc.def",
			want: "***"},
		{name: "the next argument only for an option", args: []string{"--token", "abcdef", "keys", "plain"},
			text: "abcdef keys plain", want: "*** keys plain"},
		{name: "six characters", env: env{"A": "abcdef", "B": "abc de"}, text: "abcdef abc de", want: "*** ***"},
		{name: "short words", env: env{"A": "debug", "B": "prod"}, text: "debug prod"},
		{name: "plain ones", env: env{"A": "/usr/bin:/bin", "B": `C:\x\y`, "C": "123456", "D": "-1.5", "E": "FALSE",
			"F": "en_US.UTF-8", "G": "C.UTF-8", "H": "~/data", "I": "http://localhost:8080/api"},
			args: []string{"-y", "@scope/server", "--root", "/data/files", "https://host/sse"},
			text: `/usr/bin:/bin C:\x\y 123456 -1.5 FALSE en_US.UTF-8 C.UTF-8 ~/data http://localhost:8080/api ` +
				`@scope/server /data/files https://host/sse`},
		{name: "lines", env: env{"E": "first-line\nsecond-line"}, text: "first-line, second-line",
			want: "***, ***"},
		{name: "too short", env: env{"B": "yes", "C": "true"}, text: "yes true"},
		{name: "a key in a file", env: env{"SSH_KEY": "/secret/path", "OTHER": "production"},
			text: "/secret/path production", want: "*** ***"},
		{name: "quoted", env: env{"A": `hu"nt\er`}, text: `hu"nt\er and "hu\"nt\\er"`, want: `*** and "***"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				tt.want = tt.text
			}
			if got := maskOf(discovery.Server{Env: tt.env, Args: tt.args}).text(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestMaskJSON: a secret is found however it is escaped, and what holds none stays byte for byte.
func TestMaskJSON(t *testing.T) {
	m := newMask([]string{`hu"nt\er`, "pässwörd", `ends in \`, "123456"})
	for _, tt := range []struct{ in, want string }{
		{`{ "n" : 9007199254740993, "u":"\u00e9é<" }`, ""},
		{`{"a":"is hu\"nt\\er.","n":1.0}`, `{"a":"is ***.","n":1.0}`},
		{`["hu\"nt\\er","p\u00e4ssw\u00f6rd","pässwörd"]`, `["***","***","***"]`},
		{`{"hu\"nt\\er":[true,null]}`, `{"***":[true,null]}`},
		{`"ends in \\"`, `"***"`},
		{`"{\"a\":\"hu\\\"nt\\\\er\"}"`, `"{\"a\":\"***\"}"`},
		{`{"n":123456}`, `"{\"n\":***}"`},
	} {
		if tt.want == "" {
			tt.want = tt.in
		}
		if got := string(m.json(json.RawMessage(tt.in))); got != tt.want || strings.Contains(got, "hu") {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
	}
}

// TestMaskLasts: what the configuration says is hidden for good, and what came up later as long as
// it is of use, whatever else comes up.
func TestMaskLasts(t *testing.T) {
	u, err := url.Parse("https://mcp.example/mcp?key=url-api-key")
	if err != nil {
		t.Fatal(err)
	}
	srv := discovery.Server{URL: u.String(), Headers: map[string]string{"X-Key": "Bearer configured-key"},
		BearerTokenEnv: "TOKEN"}
	s := &session{mask: maskOf(srv), cfg: Config{Environ: []string{"TOKEN=variable-token"}}, server: srv}
	c := newCredentials(s, u)
	s.server.HeadersHelper = "echo"
	c.helper.printed = printed{headers: map[string]string{"X-Other": "printed-secret"}, run: 1}
	for i := range 2 * maxLearned {
		if _, err := c.apply(t.Context(), &http.Request{Header: http.Header{}}, sent{}); err != nil {
			t.Fatal(err)
		}
		s.mask.add(fmt.Sprintf("later-%03d", i))
	}
	if got, want := s.mask.text("configured-key variable-token url-api-key printed-secret later-127 "+
		"later-000"), "*** *** *** *** *** later-000"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestProxyPasswords: a server gets the bridge's proxies, and their passwords aren't shown of what
// it writes.
func TestProxyPasswords(t *testing.T) {
	proxies := []string{"HTTPS_PROXY=http://firm-user:hunter2-a@proxy.firm:3128",
		"OTHER=http://u:not-a-proxy@host", "http_proxy=http://:hunter2-b%21@proxy.firm:3128",
		"ALL_PROXY=socks5://proxy.firm:1080"}
	if got := strings.Join(environ(nil, proxies), " "); !strings.Contains(got, "hunter2-a") {
		t.Errorf("the server gets %s", got)
	}
	s := newSession(Config{Environ: proxies}, discovery.Server{Name: "s"}, hints{})
	if got, want := s.mask.text("firm-user hunter2-a hunter2-b%21 hunter2-b! proxy.firm:1080 not-a-proxy"),
		"firm-user *** *** *** proxy.firm:1080 not-a-proxy"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHideNamed: what a person decides on loses what is said to be secret, of any server, and
// nothing else.
func TestHideNamed(t *testing.T) {
	hide := HideNamed(map[string]discovery.Server{
		"a": {Env: map[string]string{"MODE": "production", "API_TOKEN": "hunter2", "AUTH_MODE": "disabled",
			"GIT_AUTHOR_NAME": "someone", "KEYMAP": "qwertz", "SECRET": "root", "CREDENTIALS": "/home/u/.ssh",
			"DATABASE_URL": "postgres://me:opensesame@db/shop"},
			Args: []string{"--api-key", "swordfish", "workspace"}},
		"b": {Env: map[string]string{"API_TOKEN": "another1"},
			Headers: map[string]string{"Authorization": "Bearer abcdef123", "X-Team": "platform"},
			OAuth:   discovery.OAuth{ClientSecret: "oauthsecret"}},
	})
	for text, want := range map[string]string{
		"production platform workspace":  "production platform workspace",
		"hunter2 another1 swordfish":     "*** *** ***",
		"disabled someone qwertz":        "disabled someone qwertz",
		"/root/.ssh/id /home/u/.ssh/id":  "/root/.ssh/id /home/u/.ssh/id",
		"abcdef123 oauthsecret":          "*** ***",
		"the password is opensesame":     "the password is ***",
		"postgres://db/shop is the base": "postgres://db/shop is the base",
	} {
		if got := hide(text); got != want {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

// TestShown: what would be run is told, and no secret in it.
func TestShown(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    discovery.Server
		want string
	}{
		{"plain", discovery.Server{Command: "npx", Args: []string{"-y", "@scope/server-files@1.2", "/home/u/docs"}},
			"npx -y @scope/server-files@1.2 /home/u/docs"},
		{"an option", discovery.Server{Command: "x", Args: []string{"--token", "hunter2", "--api-key=hunter3"}},
			"x --token *** --api-key=***"},
		{"a variable", discovery.Server{Command: "x", Args: []string{"-c", "hunter2-long"},
			Env: map[string]string{"A": "hunter2-long"}}, "x -c ***"},
		{"a bearer", discovery.Server{Command: "npx", Args: []string{"mcp-remote",
			"https://h/mcp?k=hunter2&l=b#hunter3", "--header", "Authorization: Bearer hunter2"}},
			"npx mcp-remote https://h/mcp?k=***&l=***#*** --header ***"},
		{"a token of a known form", discovery.Server{Command: "x", Args: []string{"ghp_abcdef0123456789"}},
			"x ***"},
		{"an address", discovery.Server{URL: "https://u:hunter2@h.example/mcp?key=hunter2"},
			" https://***@h.example/mcp?key=***"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Join(append([]string{tc.s.Command}, tc.s.Args...), " ")
			if tc.s.URL != "" {
				text += " " + tc.s.URL
			}
			if got := Shown(tc.s)(text); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
