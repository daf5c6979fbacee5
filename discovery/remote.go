package discovery

import (
	"errors"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// remote reads how a server is reached. where is the member that has its URL; empty for none.
func (f *form) remote(o *hujson.Object, where string, d *definition) (bad refusal) {
	if f.programs {
		return refusal{"it is a remote server, and " + f.host + " starts programs only", "take it out, or add it as a connector of " + f.host}
	}
	var ok bool
	if where == "" {
		return refusal{"it has no url", `write "url": "https://…"`}
	}
	if d.URL, ok = optional(o, where); !ok {
		return wrongType(o, where, "a string")
	}
	d.address = d.URL
	if f.headers != "" {
		if d.Headers, bad = f.variables(o, f.headers); bad != (refusal{}) {
			return bad
		}
	}
	if f.envHeaders != "" {
		if bad = f.headersOfVariables(o, d); bad != (refusal{}) {
			return bad
		}
	}
	for _, m := range []struct {
		key string
		to  *string
	}{{f.helper, &d.HeadersHelper}, {f.bearerEnv, &d.BearerTokenEnv}, {f.resource, &d.OAuth.Resource}} {
		if m.key == "" {
			continue
		}
		if *m.to, ok = optional(o, m.key); !ok {
			return wrongType(o, m.key, "a string")
		}
	}
	if f.apiKey != "" {
		key, ok := optional(o, f.apiKey)
		if !ok {
			return wrongType(o, f.apiKey, "a string")
		}
		if key != "" {
			d.header("Authorization", "Bearer "+key)
		}
	}
	return f.login(o, d)
}

func (d *definition) header(name, value string) {
	if d.Headers == nil {
		d.Headers = map[string]string{}
	}
	d.Headers[name] = value
}

// headersOfVariables reads headers whose values are variables of ours. One that isn't set is left out, as Codex does.
func (f *form) headersOfVariables(o *hujson.Object, d *definition) refusal {
	from, bad := f.variables(o, f.envHeaders)
	for name, variable := range from {
		d.header(name, "")
		d.fromEnv = append(d.fromEnv, [2]string{name, variable})
	}
	return bad
}

// login reads what the entry says of OAuth.
func (f *form) login(o *hujson.Object, d *definition) (bad refusal) {
	if f.scopes != "" {
		if d.OAuth.Scopes, bad = stringList(o, f.scopes); bad != (refusal{}) {
			return bad
		}
	}
	if f.oauth == "" {
		return refusal{}
	}
	v := get(o, f.oauth)
	switch kind(v) {
	case "nothing", "null", "true":
		return refusal{}
	case "false":
		d.OAuth.Off = true
		return refusal{}
	case "an object":
	default:
		return wrongType(o, f.oauth, "an object")
	}
	said, _ := objectOf(v)
	w := f.oauthWords
	for _, m := range []struct {
		key string
		to  *string
	}{{w.clientID, &d.OAuth.ClientID}, {w.clientSecret, &d.OAuth.ClientSecret}, {w.metadata, &d.OAuth.MetadataURL}} {
		var ok bool
		if m.key == "" {
			continue
		}
		if *m.to, ok = optional(said, m.key); !ok {
			return refusal{"its " + f.oauth + "." + m.key + " is " + kind(get(said, m.key)) + ", not a string", "correct it"}
		}
	}
	d.OAuth.Off = w.switchedOn != "" && kind(get(said, w.switchedOn)) == "false"
	d.OAuth.Scopes, d.OAuth.CallbackPort = scopesOf(said, w.scopes), portOf(said, w.port)
	return refusal{}
}

// scopesOf is a list of scopes, or a string with blanks between them.
func scopesOf(o *hujson.Object, key string) []string {
	if key == "" {
		return nil
	}
	if text, ok := stringOf(get(o, key)); ok {
		return strings.Fields(text)
	}
	list, _ := stringsOf(get(o, key))
	return list
}

// portOf is a port, 0 if there is none that can be one.
func portOf(o *hujson.Object, key string) int {
	v := get(o, key)
	if key == "" || kind(v) != "a number" {
		return 0
	}
	if n := v.Value.(hujson.Literal).Int(); n > 0 && n < 1<<16 {
		return int(n)
	}
	return 0
}

// socket takes a URL apart that names a Unix socket. There is no login on one: the socket's permissions say who may connect, and a
// login would be kept under a URL that all sockets share.
func (s *scan) socket(r row, d *definition) refusal {
	u, err := url.Parse(d.URL)
	if !r.form.sockets || d.Transport == Stdio || err != nil || u.Scheme != "unix" {
		return refusal{}
	}
	if u.Host != "" || s.places.windows || s.places.clean(u.Path) == "" {
		return refusal{"its url names a Unix socket that can't be connected to here", `write "unix:///path/to/server.sock"`}
	}
	if err := s.owners.Path(u.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		reason, next := s.others(err)
		return refusal{"its url names a socket, and " + reason, next}
	}
	d.Socket, d.URL, d.OAuth = u.Path, "http://localhost/"+strings.TrimPrefix(u.Fragment, "/"), OAuth{Off: true}
	return refusal{}
}

// reachable says what is wrong with a remote server as it would be called.
func (d definition) reachable() refusal {
	u, err := url.Parse(d.URL)
	switch {
	case err != nil || u.Scheme == "":
		return refusal{"its url is not one", `write "https://…"`}
	case u.Scheme != "http" && u.Scheme != "https":
		return refusal{"its url is of the kind " + display(u.Scheme) + ":, which isn't HTTP", "use its http or https address, if it has one"}
	case u.Hostname() == "":
		return refusal{"its url names no host", `write "https://…"`}
	}
	for name, value := range d.Headers {
		if !headerName(name) {
			return refusal{"it has a header whose name can't be sent", "correct the name"}
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return refusal{"the value of its header " + display(name) + " has a line break or a NUL in it", "take it out"}
		}
	}
	return refusal{}
}

// headerName is a token of RFC 9110.
func headerName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// isOwnURL says whether a URL is of the bridge's own listener, by any name of this machine.
func (s *scan) isOwnURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	port := effectivePort(u)
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	for _, listen := range s.env.Self.Listen {
		own, ownPort, err := net.SplitHostPort(listen)
		if err != nil || ownPort != port {
			continue
		}
		if strings.EqualFold(host, own) || isLocal(host) || slices.ContainsFunc(s.env.Self.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
			return true
		}
	}
	return false
}

// isLocal says whether a host is this machine, whatever else it is called.
func isLocal(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "host.docker.internal" || host == "host.containers.internal" {
		return true
	}
	ip := net.ParseIP(strings.Split(host, "%")[0])
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}
