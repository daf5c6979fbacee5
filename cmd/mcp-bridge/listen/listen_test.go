package listen

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestListener: which flags go together, and which addresses are listened to.
func TestListener(t *testing.T) {
	for _, tc := range []struct {
		flags         string
		authenticated bool
		want          string // of the error
	}{
		{flags: ""},
		{flags: "--tls-cert=x", want: "--tls-cert is for HTTP"},
		{flags: "--behind-proxy", want: "--behind-proxy is for HTTP"},
		{flags: "--metrics", want: "--metrics is for HTTP"},
		{flags: "--http=7878", want: "must be an address with a port"},
		{flags: "--http=127.0.0.1:7878"},
		{flags: "--http=127.9.9.9:7878"},
		{flags: "--http=[::1]:7878"},
		{flags: "--http=localhost:7878"},
		{flags: "--http=127.0.0.1:7878 --tls-cert=x", want: "give both"},
		{flags: "--http=127.0.0.1:7878 --allow-origin=app.example", want: "must be a scheme and a host"},
		{flags: "--http=127.0.0.1:7878 --allow-origin=https://app.example/x", want: "must be a scheme and a host"},
		{flags: "--http=127.0.0.1:7878 --allow-origin=https://app.example"},
		{flags: "--http=127.0.0.1:7878 --allow-origin=https://user@app.example",
			want: "must be a scheme and a host"},
		{flags: "--http=127.0.0.1:7878 --allow-origin=https://äpp.example", want: "in ASCII"},
		{flags: "--http=127.0.0.1:7878 --allow-origin=null", want: "must be a scheme and a host"},
		{flags: "--http=127.0.0.1:7878 --allow-host=", want: "must be a name"},
		{flags: "--http=127.0.0.1:7878 --allow-host=:7878", want: "must be a name"},
		{flags: "--http=127.0.0.1:7878 --allow-host=https://bridge.example", want: "must be a name"},
		{flags: "--http=127.0.0.1:7878 --allow-host=bridge.example/mcp", want: "must be a name"},
		{flags: "--http=127.0.0.1:7878 --allow-host=bridge.example:8443 --allow-host=[::1]"},
		{flags: "--http=127.0.0.1:7878 --allow-host=*", want: "no patterns"},
		{flags: "--http=127.0.0.1:7878 --allow-host=*.team", want: "no patterns"},
		{flags: "--http=127.0.0.1:7878 --allow-host=a,b", want: "for more names give it again"},
		{flags: "--http=127.0.0.1:7878 --allow-host=under_score.team --allow-host=h --allow-host=192.0.2.1:80"},
		{flags: "--http=unix:/run/x", want: "--http systemd"},
		{flags: "--http=/run/x", want: "--http systemd"},
		{flags: "--http=:7878", want: "token add NAME"},
		{flags: "--http=:7878", want: "all who do could run code"},
		{flags: "--http=0.0.0.0:7878", want: "all who do could run code"},
		{flags: "--http=[::]:7878", want: "all who do could run code"},
		{flags: "--http=192.0.2.1:7878", want: "all who do could run code"},
		{flags: "--http=bridge.example:7878", want: "all who do could run code"},
		{flags: "--http=:7878 --tls-cert=x --tls-key=y", want: "all who do could run code"},
		{flags: "--http=:7878", authenticated: true, want: "unencrypted"},
		{flags: "--http=:7878 --tls-cert=x --tls-key=y", authenticated: true},
		{flags: "--http=:7878 --behind-proxy", authenticated: true},
		{flags: "--http=:7878 --behind-proxy", want: "all who do could run code"},
		{flags: "--http=127.0.0.1:7878 --behind-proxy", want: "lets others in"},
		{flags: "--http=127.0.0.1:7878 --behind-proxy", authenticated: true},
	} {
		var l Listener
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		l.AddFlags(f)
		if err := f.Parse(strings.Fields(tc.flags)); err != nil {
			t.Fatal(err)
		}
		err := l.Check(f)
		if err == nil && l.addr != "" {
			err = l.checkExposed(tc.authenticated)
		}
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.flags, err, tc.want)
		}
	}
}

// TestListenNetwork: an address of IPv4 is of IPv4 alone, and which ones stand for all is known.
func TestListenNetwork(t *testing.T) {
	for addr, want := range map[string]struct {
		network  string
		wildcard bool
	}{
		"0.0.0.0:1": {"tcp4", true}, "127.0.0.1:1": {"tcp4", false}, "[::]:1": {"tcp", true}, ":1": {"tcp", true},
		"[::1]:1": {"tcp", false}, "localhost:1": {"tcp", false}, "/run/x": {"tcp", false},
	} {
		l := Listener{addr: addr}
		if l.network() != want.network || l.wildcard() != want.wildcard {
			t.Errorf("%s: %s, %v", addr, l.network(), l.wildcard())
		}
	}
}

// TestAsSent: origins and hosts that are named in another form than clients send are understood.
func TestAsSent(t *testing.T) {
	l := Listener{addr: "127.0.0.1:1",
		Origins: []string{"HTTPS://App.Example", "https://a.example:443", "http://a.example:80",
			"https://a.example:80", "http://[::1]:80", "vscode-webview://x"},
		hosts: []string{"b.example:443", "[::1]:80", "b.example:8443"}}
	if err := l.Check(pflag.NewFlagSet("", pflag.ContinueOnError)); err != nil {
		t.Fatal(err)
	}
	const want = "https://app.example https://a.example http://a.example https://a.example:80 http://[::1] " +
		"vscode-webview://x b.example [::1] b.example:8443"
	if got := strings.Join(append(l.Origins, l.hosts...), " "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
