package upstream

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// depthVar counts how many bridges a process is below, so that a bridge that was configured as its
// own server can see it.
const depthVar = "MCP_BRIDGE_DEPTH"

// inherited are the variables that every server gets from the bridge's own environment: where it
// is, who the user is, and how this machine reaches the network, without which npx and uvx fetch
// nothing behind a firm's proxy or with its authority. LC_* come in addition.
var inherited = []string{
	"PATH", "HOME", "LANG", "LANGUAGE", "TMPDIR", "TMP", "TEMP", "USER", "LOGNAME", "SHELL", "TERM", "TZ",
	"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",

	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
}

// proxies are those of inherited that can have a user's name and password.
var proxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}

// proxySecrets returns what of an environment's proxies is never shown.
func proxySecrets(environ []string) (values []string) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains(proxies, strings.ToUpper(name)) {
			values = append(values, hidden(value)...)
		}
	}
	return values
}

// inheritedWindows come in addition there: without them many programs don't start.
var inheritedWindows = []string{
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS", "PATHEXT",
	"PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT",
	"USERNAME", "USERPROFILE", "WINDIR",
}

// environ returns the environment of one server: the few variables that are inherited, its own, and
// the depth.
func environ(own map[string]string, from []string) []string {
	vars := map[string]string{}
	depth := 0
	for _, kv := range from {
		k, v, _ := strings.Cut(kv, "=")
		upper := k
		if goruntime.GOOS == "windows" {
			upper = strings.ToUpper(k)
		}
		switch {
		case k == depthVar:
			depth, _ = strconv.Atoi(v)
		case slices.Contains(inherited, upper), strings.HasPrefix(k, "LC_"),
			goruntime.GOOS == "windows" && slices.Contains(inheritedWindows, upper):
			vars[upper] = v
		}
	}
	for k, v := range own {
		vars[k] = v
	}
	vars[depthVar] = strconv.Itoa(depth + 1)
	env := make([]string, 0, len(vars))
	for k, v := range vars {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	return env
}

// command returns the command of one server, without its standard streams. It has no context: a
// server outlives the call that it was started for.
func command(s discovery.Server, from []string) (*exec.Cmd, error) {
	if s.Command == "" {
		return nil, errors.New("it has no command; only servers that are started as a program (stdio) can be used")
	}
	if s.Dir != "" {
		if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("its working directory %s does not exist; make it, or correct it in %s",
				s.Dir, origin(s))
		}
	}
	path, err := lookPath(s.Command, s.Env["PATH"])
	if err != nil {
		return nil, startError(s, err)
	}
	cmd := exec.Command(path, s.Args...)
	cmd.Args[0] = s.Command
	cmd.Env = environ(s.Env, from)
	cmd.Dir = s.Dir
	return cmd, nil
}

// lookPath finds a program as the server itself would: in its own PATH where its configuration sets
// one.
func lookPath(name, path string) (string, error) {
	if path == "" || filepath.Base(name) != name || goruntime.GOOS == "windows" {
		if filepath.Base(name) != name {
			return name, nil // relative to the server's directory, as exec does it
		}
		return exec.LookPath(name)
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && filepath.IsAbs(file) && info.Mode().IsRegular() &&
			info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("%q is in no directory of the PATH that its configuration sets: %w",
		name, exec.ErrNotFound)
}

// startError adds the next step to a failure of the system to start a program.
func startError(s discovery.Server, err error) error {
	switch missing := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist); {
	case missing && strings.HasPrefix(s.Command, "~"):
		return fmt.Errorf("%w; ~ is not filled in: write the whole path in %s", err, origin(s))
	case missing && strings.Contains(s.Command, " "):
		return fmt.Errorf("%w; install it, or write its arguments into args in %s", err, origin(s))
	case missing:
		return fmt.Errorf("%w; install it, or correct the server's command in %s", err, origin(s))
	}
	return fmt.Errorf("%w; correct the server's command in %s", err, origin(s))
}

// origin returns where a person would correct a server.
func origin(s discovery.Server) string {
	if s.Source.Path == "" {
		return "its configuration"
	}
	return s.Source.String()
}
