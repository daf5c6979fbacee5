package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
)

// listener is what serve listens to over HTTP.
type listener struct {
	addr           string       // host:port, or bySystemd; empty for stdio
	socket         net.Listener // that systemd has handed over; nil for none
	cert, key      string       // files
	proxied        bool
	metrics        bool
	hosts, origins []string
}

func (l *listener) addFlags(f *pflag.FlagSet) {
	f.StringVar(&l.addr, "http", "",
		"serve over HTTP on this `address`, such as 127.0.0.1:7878, and not over stdio; "+
			"systemd for the socket that it hands over")
	f.StringVar(&l.cert, "tls-cert", "", "`file` with the certificate to serve HTTPS with")
	f.StringVar(&l.key, "tls-key", "", "`file` with its key")
	f.BoolVar(&l.proxied, "behind-proxy", false, "a proxy in front has the TLS, and lets through what it should")
	f.StringArrayVar(&l.hosts, "allow-host", nil,
		"`name` that clients may reach the bridge by, beside those of the address")
	f.StringArrayVar(&l.origins, "allow-origin", nil,
		"`origin` of pages that may call, such as https://app.example.org")
	f.BoolVar(&l.metrics, "metrics", false, "serve /metrics, for Prometheus")
}

// check returns what is wrong with the flags.
func (l *listener) check(f *pflag.FlagSet) error {
	if l.addr == "" {
		for _, name := range []string{
			"tls-cert", "tls-key", "behind-proxy", "allow-host", "allow-origin", "metrics",
		} {
			if f.Changed(name) {
				return fmt.Errorf("--%s is for HTTP: give --http an address, such as 127.0.0.1:7878", name)
			}
		}
		return nil
	}
	if strings.HasPrefix(l.addr, "unix:") || strings.HasPrefix(l.addr, "/") {
		return fmt.Errorf("--http=%q: a Unix socket is served only where systemd hands it over: --http systemd",
			l.addr)
	}
	if _, _, err := net.SplitHostPort(l.addr); err != nil && l.addr != bySystemd {
		return fmt.Errorf("--http=%q: it must be an address with a port, such as 127.0.0.1:7878", l.addr)
	}
	if (l.cert == "") != (l.key == "") {
		return errors.New("--tls-cert and --tls-key belong together: give both")
	}
	for i, origin := range l.origins {
		sent, ok := asSent(origin)
		if !ok {
			return fmt.Errorf("--allow-origin=%q: it must be a scheme and a host, such as "+
				"https://app.example.org, and in ASCII, as browsers send it", origin)
		}
		l.origins[i] = sent
	}
	for i, host := range l.hosts {
		u, err := url.Parse("//" + host)
		if err != nil || u.Host != host || !isHost(u.Hostname()) {
			return fmt.Errorf("--allow-host=%q: it must be a name, such as bridge.example.org, and in ASCII, as "+
				"clients send it; for more names give it again, there are no patterns", host)
		}
		if port := u.Port(); port == "443" || port == "80" { // which clients leave out
			l.hosts[i] = strings.TrimSuffix(host, ":"+port)
		}
	}
	return nil
}

// asSent returns an origin as browsers write it: in small letters, without the port that is its
// scheme's own.
func asSent(origin string) (sent string, ok bool) {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Hostname() == "" || !strings.EqualFold(u.Scheme+"://"+u.Host, origin) ||
		strings.HasSuffix(origin, ":") || !ascii(origin) {
		return "", false
	}
	own := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), own), true
}

// hostName is what the name of a host looks like.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)

// isHost reports whether a request's Host may be a name, apart from its port.
func isHost(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil || hostName.MatchString(name)
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c > unicode.MaxASCII })
}

// open returns whether others than this machine's programs can reach the address.
func (l *listener) open() bool {
	host, _, _ := net.SplitHostPort(l.addr)                    // check has done so
	if host == "localhost" || strings.HasPrefix(l.addr, "/") { // a socket's file has an owner and a mode
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.IsLoopback()
}

// checkExposed returns an error if others could use the bridge without having to say who they are,
// or could listen when they say it.
func (l *listener) checkExposed(authenticated bool) error {
	switch {
	case l.open() && !authenticated:
		return fmt.Errorf("%s can be reached from other machines, and all who do could run code and use your "+
			"servers: listen on 127.0.0.1, or have clients authenticate: mcp-bridge token add NAME makes a token "+
			"(docs/http.md)", l.addr)
	case l.open() && l.cert == "" && !l.proxied:
		return fmt.Errorf("%s can be reached from other machines, and tokens would cross the network unencrypted: "+
			"give --tls-cert and --tls-key, or --behind-proxy where a proxy in front has the TLS", l.addr)
	case l.proxied && !authenticated:
		return errors.New("--behind-proxy lets others in, and all of them could run code and use your servers: " +
			"have clients authenticate: mcp-bridge token add NAME makes a token (docs/http.md)")
	}
	return nil
}

// resolve returns an error if the address names a host that there isn't.
func (l *listener) resolve(ctx context.Context) error {
	host, _, _ := net.SplitHostPort(l.addr)
	if l.socket != nil || host == "" {
		return nil
	}
	if _, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
		return fmt.Errorf("--http=%q: %w; give an address of this machine, such as 127.0.0.1:7878", l.addr, err)
	}
	return nil
}

// network returns what the address is of: one of IPv4 is listened to over that alone.
func (l *listener) network() string {
	host, _, _ := net.SplitHostPort(l.addr)
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}

// wildcard reports whether the address stands for all of the machine, so that it says nothing of
// the name by which clients come.
func (l *listener) wildcard() bool {
	host, port, _ := net.SplitHostPort(l.addr)
	ip, err := netip.ParseAddr(host)
	return host == "" && port != "" || err == nil && ip.IsUnspecified()
}

// A listenError says that an address can't be listened to.
type listenError struct {
	addr string
	err  error
}

func (e *listenError) Error() string { return fmt.Sprintf("listening on %s: %v", e.addr, e.err) }

func (e *listenError) Unwrap() error { return e.err }

// Hint names the next step for a person.
func (e *listenError) Hint() string {
	switch {
	case errors.Is(e.err, syscall.EADDRINUSE):
		return "end what listens there, perhaps another bridge, or give --http another port"
	case errors.Is(e.err, os.ErrPermission):
		return "give --http a port from 1024 on, such as 127.0.0.1:7878: those below are the system's"
	}
	return "give --http an address of this machine, such as 127.0.0.1:7878"
}

// names returns the hosts by which the bridge may be called.
func (l *listener) names() []string {
	names := append(append([]string{}, streamable.Loopback...), l.hosts...)
	host, _, _ := net.SplitHostPort(l.addr)
	if ip, err := netip.ParseAddr(host); host != "" && (err != nil || !ip.IsUnspecified()) {
		names = append(names, host)
	}
	return names
}

// listen serves over HTTP until ctx ends.
func (p *parts) listen(ctx context.Context, l *listener) error {
	if p.cfg.UpstreamRoots != "none" {
		return exit.Usage(errors.New("MCP_BRIDGE_UPSTREAM_ROOTS=client is for stdio: over HTTP clients share " +
			"servers, and one would have the directories of one client for all of them; leave it out"))
	}
	who, err := p.cfg.authenticator(p.log)
	if err != nil {
		return err
	}
	if err := l.resolve(ctx); err != nil {
		return exit.Usage(err)
	}
	if err := l.checkExposed(who.Asks()); err != nil {
		return exit.Usage(err)
	}
	scheme := "http"
	if l.cert != "" {
		scheme = "https"
		if _, err := tls.LoadX509KeyPair(l.cert, l.key); err != nil {
			return exit.Usage(fmt.Errorf("--tls-cert and --tls-key can't be used: %w; give the PEM files of a "+
				"certificate and of its key, which this user may read", err))
		}
	}
	socket := l.socket
	if socket == nil {
		if socket, err = net.Listen(l.network(), l.addr); err != nil {
			return &listenError{l.addr, err}
		}
	}
	if len(p.cfg.Config) == 0 {
		p.log.Warn("MCP_BRIDGE_CONFIG is not set, so code has no servers: over HTTP no others are used",
			"next", "set it to a file that names servers, and start the bridge again")
	} else {
		p.log.Warn("over HTTP only the servers of MCP_BRIDGE_CONFIG are used, and all clients act with the " +
			"credentials that are configured for them")
	}
	p.log.Info("listening", "url", scheme+"://"+socket.Addr().String()+streamable.Path, "clients", letIn(who))
	if l.wildcard() && len(l.hosts) == 0 && p.cfg.HTTPAudience == "" {
		p.log.Warn("clients get 403 that reach the bridge by another name or address than those of loopback: add " +
			"theirs with --allow-host")
	}
	hosts := l.names()
	if own, err := url.Parse(p.cfg.HTTPAudience); err == nil && own.Host != "" { // by which clients know it
		hosts = append(hosts, own.Host)
	}
	if who != nil {
		ctx, end := context.WithCancel(ctx)
		looked := make(chan struct{})
		go func() { defer close(looked); removeRevoked(ctx, who.Tokens, p.lasting, p.log) }()
		defer func() { end(); <-looked }()
	}
	return streamable.New(streamable.Config{
		Clients: p.bridge.Clients(), Hosts: hosts, Origins: l.origins, Metrics: l.metrics, Log: p.log,
		Authenticate: authenticate(who, p.log), WellKnown: who.WellKnown(), Replica: p.cfg.replica(listening),
		DrainTime: time.Duration(p.cfg.MaxTimeout), Proxied: l.proxied,
		Lost: p.driver.Lost,
	}).Serve(ctx, socket, l.cert, l.key)
}
