package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
)

// listener is what serve listens to over HTTP.
type listener struct {
	addr           string // host:port, or bySystemd; empty for stdio
	cert, key      string // files
	proxied        bool
	metrics        bool
	hosts, origins []string
}

func (l *listener) addFlags(f *pflag.FlagSet) {
	f.StringVar(&l.addr, "http", "",
		"serve over HTTP on this `address`, such as 127.0.0.1:7878, and not over stdio; systemd for the socket "+
			"that it hands over")
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
	if _, _, err := net.SplitHostPort(l.addr); err != nil && l.addr != bySystemd {
		return fmt.Errorf("--http=%q: it must be an address with a port, such as 127.0.0.1:7878", l.addr)
	}
	if (l.cert == "") != (l.key == "") {
		return errors.New("--tls-cert and --tls-key belong together: give both")
	}
	for _, origin := range l.origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			return fmt.Errorf("--allow-origin=%q: it must be a scheme and a host, such as https://app.example.org",
				origin)
		}
	}
	return nil
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
			"servers: listen on 127.0.0.1, or have clients authenticate (docs/http.md)", l.addr)
	case l.open() && l.cert == "" && !l.proxied:
		return fmt.Errorf("%s can be reached from other machines, and tokens would cross the network unencrypted: "+
			"give --tls-cert and --tls-key, or --behind-proxy where a proxy in front has the TLS", l.addr)
	case l.proxied && !authenticated:
		return errors.New("--behind-proxy lets others in, and all of them could run code and use your servers: " +
			"have clients authenticate (docs/http.md)")
	}
	return nil
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
	who, err := p.cfg.authenticator(p.log)
	if err != nil {
		return err
	}
	var socket net.Listener
	if l.addr == bySystemd {
		if socket, err = activated(); err != nil {
			return usageError{err}
		}
		l.addr = socket.Addr().String()
	}
	if err := l.checkExposed(who != nil); err != nil {
		return usageError{err}
	}
	if socket == nil {
		if socket, err = net.Listen("tcp", l.addr); err != nil {
			return fmt.Errorf("listening on %s: %w", l.addr, err)
		}
	}
	scheme := "http"
	if l.cert != "" {
		scheme = "https"
	}
	p.log.Warn("over HTTP only the servers of MCP_BRIDGE_CONFIG are used, and all clients act with the " +
		"credentials that are configured for them")
	p.log.Info("listening", "url", scheme+"://"+socket.Addr().String()+streamable.Path)
	hosts := l.names()
	if own, err := url.Parse(p.cfg.HTTPAudience); err == nil && own.Host != "" { // by which clients know it
		hosts = append(hosts, own.Host)
	}
	return streamable.New(streamable.Config{
		Clients: p.bridge.Clients(), Hosts: hosts, Origins: l.origins, Metrics: l.metrics, Log: p.log,
		Authenticate: authenticate(who), WellKnown: who.WellKnown(),
	}).Serve(ctx, socket, l.cert, l.key)
}
