// Package listen finds where the bridge is reached over HTTP: the address, or the socket that
// systemd hands over, the names that clients may use, and whether others than this machine's
// programs come.
package listen

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
	"unicode"

	"github.com/spf13/pflag"

	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
)

// Listener is what serve listens to over HTTP.
type Listener struct {
	Cert, Key string // files
	Proxied   bool
	Metrics   bool
	Origins   []string

	addr   string       // host:port, or bySystemd; empty for stdio
	socket net.Listener // that systemd has handed over; nil for none
	hosts  []string
}

// AddFlags adds the flags that set l.
func (l *Listener) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&l.addr, "http", "",
		"serve over HTTP on this `address`, such as 127.0.0.1:7878, and not over stdio; "+
			"systemd for the socket that it hands over")
	f.StringVar(&l.Cert, "tls-cert", "", "`file` with the certificate to serve HTTPS with")
	f.StringVar(&l.Key, "tls-key", "", "`file` with its key")
	f.BoolVar(&l.Proxied, "behind-proxy", false, "a proxy in front has the TLS, and lets through what it should")
	f.StringArrayVar(&l.hosts, "allow-host", nil,
		"`name` that clients may reach the bridge by, beside those of the address")
	f.StringArrayVar(&l.Origins, "allow-origin", nil,
		"`origin` of pages that may call, such as https://app.example.org")
	f.BoolVar(&l.Metrics, "metrics", false, "serve /metrics, for Prometheus")
}

// Check returns what is wrong with the flags.
func (l *Listener) Check(f *pflag.FlagSet) error {
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
	if (l.Cert == "") != (l.Key == "") {
		return errors.New("--tls-cert and --tls-key belong together: give both")
	}
	for i, origin := range l.Origins {
		sent, ok := asSent(origin)
		if !ok {
			return fmt.Errorf("--allow-origin=%q: it must be a scheme and a host, such as "+
				"https://app.example.org, and in ASCII, as browsers send it", origin)
		}
		l.Origins[i] = sent
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

// exposed reports whether others than this machine's programs can reach the address.
func (l *Listener) exposed() bool {
	host, _, _ := net.SplitHostPort(l.addr)                    // Check has done so
	if host == "localhost" || strings.HasPrefix(l.addr, "/") { // a socket's file has an owner and a mode
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.IsLoopback()
}

// HTTP reports whether clients come over HTTP, and not over stdio.
func (l *Listener) HTTP() bool { return l.addr != "" }

// Take takes the socket that systemd hands over, if that is what the address stands for. end closes
// it.
func (l *Listener) Take() (end func(), err error) {
	if l.addr != bySystemd {
		return func() {}, nil
	}
	if l.socket, err = activated(); err != nil {
		return nil, exit.Usage(err)
	}
	l.addr = l.socket.Addr().String()
	return func() { l.socket.Close() }, nil
}

// Listen listens. It refuses what others could use without having to say who they are.
func (l *Listener) Listen(ctx context.Context, authenticated bool) (net.Listener, error) {
	if err := l.resolve(ctx); err != nil {
		return nil, exit.Usage(err)
	}
	if err := l.checkExposed(authenticated); err != nil {
		return nil, exit.Usage(err)
	}
	if l.Cert != "" {
		if _, err := tls.LoadX509KeyPair(l.Cert, l.Key); err != nil {
			return nil, exit.Usage(fmt.Errorf("--tls-cert and --tls-key can't be used: %w; give the PEM files of a "+
				"certificate and of its key, which this user may read", err))
		}
	}
	if l.socket != nil {
		return l.socket, nil
	}
	socket, err := net.Listen(l.network(), l.addr)
	if err != nil {
		return nil, &text.HintError{Err: fmt.Errorf("listening on %s: %w", l.addr, err), Next: hint(err)}
	}
	return socket, nil
}

// Scheme returns the one of URLs by which clients come.
func (l *Listener) Scheme() string {
	if l.Cert != "" {
		return "https"
	}
	return "http"
}

// Unnamed reports whether clients come by a name that neither the address nor a flag has.
func (l *Listener) Unnamed() bool { return l.wildcard() && len(l.hosts) == 0 }

// checkExposed returns an error if others could use the bridge without having to say who they are,
// or could listen when they say it.
func (l *Listener) checkExposed(authenticated bool) error {
	switch {
	case l.exposed() && !authenticated:
		return fmt.Errorf("%s can be reached from other machines, and all who do could run code and use your "+
			"servers: listen on 127.0.0.1, or have clients authenticate: mcp-bridge token add NAME makes a token "+
			"(docs/http.md)", l.addr)
	case l.exposed() && l.Cert == "" && !l.Proxied:
		return fmt.Errorf("%s can be reached from other machines, and tokens would cross the network unencrypted: "+
			"give --tls-cert and --tls-key, or --behind-proxy where a proxy in front has the TLS", l.addr)
	case l.Proxied && !authenticated:
		return errors.New("--behind-proxy lets others in, and all of them could run code and use your servers: " +
			"have clients authenticate: mcp-bridge token add NAME makes a token (docs/http.md)")
	}
	return nil
}

// resolve returns an error if the address names a host that there isn't.
func (l *Listener) resolve(ctx context.Context) error {
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
func (l *Listener) network() string {
	host, _, _ := net.SplitHostPort(l.addr)
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}

// wildcard reports whether the address stands for all of the machine, so that it says nothing of
// the name by which clients come.
func (l *Listener) wildcard() bool {
	host, port, _ := net.SplitHostPort(l.addr)
	ip, err := netip.ParseAddr(host)
	return host == "" && port != "" || err == nil && ip.IsUnspecified()
}

// hint returns the next step after an address couldn't be listened to.
func hint(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "end what listens there, perhaps another bridge, or give --http another port"
	case errors.Is(err, os.ErrPermission):
		return "give --http a port from 1024 on, such as 127.0.0.1:7878: those below are the system's"
	}
	return "give --http an address of this machine, such as 127.0.0.1:7878"
}

// Names returns the hosts by which the bridge may be called.
func (l *Listener) Names() []string {
	names := append(append([]string{}, streamable.Loopback...), l.hosts...)
	host, _, _ := net.SplitHostPort(l.addr)
	if ip, err := netip.ParseAddr(host); host != "" && (err != nil || !ip.IsUnspecified()) {
		names = append(names, host)
	}
	return names
}
