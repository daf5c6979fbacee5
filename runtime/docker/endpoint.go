package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/trust"
)

// endpoint is a place where docker's API may be had.
type endpoint struct {
	url    string
	secure bool // TLS, with certs
	certs  certs
	vm     bool // known by its place to be in a virtual machine, which is the wall, rootful inside or not

	refused error // why it is not to be used, though it is there; nil for nothing
}

// plain says that the connection to e is neither encrypted nor authenticated.
func (e endpoint) plain() bool {
	switch e.scheme() {
	case "unix", "npipe", "ssh", "https":
		return false
	case "tcp":
		return !e.secure
	}
	return true
}

// scheme is the URL's in small letters, in which its case means nothing.
func (e endpoint) scheme() string {
	scheme, _, _ := strings.Cut(e.url, ":")
	return strings.ToLower(scheme)
}

// open says what the connection to e lets others do; nothing where none but the engine can read and answer it.
func (e endpoint) open() []string {
	switch {
	case e.plain():
		return []string{"the connection to docker is neither encrypted nor authenticated: every user of this machine can change what runs"}
	case e.certs.insecure && (e.scheme() == "tcp" || e.scheme() == "https"):
		return []string{"docker's certificate is not verified, as its context says: whoever is on the way can be taken for it"}
	}
	return nil
}

// found are the endpoints to try, in order. With only, the user has named the one that counts.
type found struct {
	list []endpoint
	only bool
}

// endpoints are what the user names, alone; or else the context that docker itself would use and the sockets that are there.
func (d *Driver) endpoints() (found, error) {
	s := d.settings
	for _, url := range []string{d.cfg.Endpoint, s.host} {
		if url != "" {
			e := endpoint{url: url}
			e.certs, e.secure = s.certs()
			return found{[]endpoint{e}, true}, nil
		}
	}
	if s.context != "" && s.context != "default" {
		e, err := s.contextEndpoint(s.context)
		return found{[]endpoint{e}, true}, err
	}
	var f found
	if s.context == "" {
		// Docker Desktop makes its context the current one by itself, so this is no choice that rules out the others.
		c, err := s.config()
		if err != nil {
			return f, err
		}
		if c.CurrentContext != "" && c.CurrentContext != "default" {
			e, err := s.contextEndpoint(c.CurrentContext)
			if err != nil {
				return f, err
			}
			f.list = append(f.list, e)
		}
	}
	f.list = append(f.list, d.sockets(s.home)...)
	return f, nil
}

// machines are the sockets, below the home directory, of products that run dockerd in a virtual machine of their own.
var machines = []string{
	".docker/run/docker.sock",       // Docker Desktop, macOS
	".docker/desktop/docker.sock",   // Docker Desktop, Linux
	".colima/default/docker.sock",   // Colima
	".orbstack/run/docker.sock",     // OrbStack
	".rd/docker.sock",               // Rancher Desktop
	".lima/docker/sock/docker.sock", // Lima's template
}

// sockets are those of this machine that are there, the rootless ones first. Nobody has named them, so whose they are is looked
// at.
func (d *Driver) sockets(home string) []endpoint {
	var all []endpoint
	add := func(path string, vm bool, refused error) {
		if fi, err := os.Stat(path); err != nil || fi.Mode()&os.ModeSocket == 0 {
			return
		}
		if refused == nil {
			refused = trust.System().Path(path)
		}
		if refused != nil {
			d.log.Warn("socket not used", "path", path, "err", refused)
		}
		all = append(all, endpoint{url: "unix://" + path, vm: vm, refused: refused})
	}
	if dir := d.cfg.RuntimeDir; dir != "" {
		err := trust.System().OwnDirectory(dir)
		if err != nil {
			err = fmt.Errorf("XDG_RUNTIME_DIR is ignored: %w", err)
		}
		add(filepath.Join(dir, "docker.sock"), false, err)
	}
	if home != "" {
		for _, m := range machines {
			add(filepath.Join(home, filepath.FromSlash(m)), true, nil)
		}
	}
	add("/var/run/docker.sock", false, nil)
	if goruntime.GOOS == "windows" {
		all = append(all, endpoint{url: "npipe:////./pipe/docker_engine"})
	}
	return all
}

// try dials an endpoint that nothing speaks against.
func (d *Driver) try(ctx context.Context, e endpoint) (*connection, error) {
	if e.refused != nil {
		return nil, d.unavailable(e.url, e.refused, "if you trust who listens there, set MCP_BRIDGE_RUNTIME="+e.url)
	}
	return d.dial(ctx, e)
}

// refusals are the reasons against the sockets that were there and not used.
func refusals(all []endpoint) []string {
	var why []string
	for _, e := range all {
		if e.refused != nil {
			why = append(why, "the socket "+strings.TrimPrefix(e.url, "unix://")+" is there and not used: "+e.refused.Error())
		}
	}
	return why
}
