package docker

import (
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// endpoint is a place where docker's API may be had.
type endpoint struct {
	engine.Endpoint
	secure bool // TLS, with certs
	certs  certs
}

// plain reports whether the connection to e is neither encrypted nor authenticated.
func (e endpoint) plain() bool {
	switch e.scheme() {
	case "unix", "npipe", "ssh", "https":
		return false
	case "tcp":
		return !e.secure
	}
	return true
}

// scheme returns the URL's in small letters; its case means nothing.
func (e endpoint) scheme() string {
	scheme, _, _ := strings.Cut(e.URL, ":")
	return strings.ToLower(scheme)
}

// open returns what the connection to e lets others do: nothing where only the engine can read and
// answer it.
func (e endpoint) open() []string {
	switch {
	case e.plain():
		return []string{"the connection to docker is neither encrypted nor authenticated:" +
			" every user of this machine can change what runs"}
	case e.certs.insecure && (e.scheme() == "tcp" || e.scheme() == "https"):
		return []string{"docker's certificate is not verified, as its context says:" +
			" any machine on the way can be taken for it"}
	}
	return nil
}

// found are the endpoints to try, in order. With only, the user has named the one that counts.
type found struct {
	list []endpoint
	only bool
}

// endpoints returns what the user names, alone; or else the context that docker itself would use
// and the sockets that are there.
func (d *Driver) endpoints() (found, error) {
	s := d.settings
	for _, url := range []string{d.cfg.Endpoint, s.host} {
		if url != "" {
			e := endpoint{Endpoint: engine.Endpoint{URL: url}}
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
		// Docker Desktop makes its context the current one by itself, so this is not a choice that
		// rules out the others.
		name, err := s.currentContext()
		if err != nil {
			return f, err
		}
		if name != "" && name != "default" {
			e, err := s.contextEndpoint(name)
			if err != nil {
				return f, err
			}
			f.list = append(f.list, e)
		}
	}
	f.list = append(f.list, d.sockets(s.home)...)
	return f, nil
}

// machines are the sockets, below the home directory, of products that run dockerd in a virtual
// machine of their own.
var machines = []string{
	".docker/run/docker.sock",       // Docker Desktop, macOS
	".docker/desktop/docker.sock",   // Docker Desktop, Linux
	".colima/default/docker.sock",   // Colima
	".orbstack/run/docker.sock",     // OrbStack
	".rd/docker.sock",               // Rancher Desktop
	".lima/docker/sock/docker.sock", // Lima's template
}

// below reports whether a path is below a directory once links are resolved.
func below(dir, path string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	path, err = filepath.EvalSymlinks(path)
	return err == nil && strings.HasPrefix(path, dir+string(filepath.Separator))
}

// sockets returns those of this machine that are there, the rootless ones first.
func (d *Driver) sockets(home string) []endpoint {
	var all []endpoint
	add := func(path string, vm bool, refused error) {
		if p, ok := engine.FindSocket(d.log, path, refused); ok {
			p.VM = vm && below(home, path) // a link may lead to this machine's own socket
			all = append(all, endpoint{Endpoint: p})
		}
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
		all = append(all, endpoint{Endpoint: engine.Endpoint{URL: "npipe:////./pipe/docker_engine"}})
	}
	return all
}
