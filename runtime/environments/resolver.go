package environments

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

// young is how long a release must have been there before a lock has it, unless Config.MinAge says
// otherwise. Most releases that hold malware are found and withdrawn within days.
const young = 7 * 24 * time.Hour

// resolver knows where packages come from, and has uv choose their versions.
type resolver struct {
	trust trust.Owners

	mu     sync.Mutex
	index  string        // Config.Index, or what Follow was told later
	minAge time.Duration // Config.MinAge, likewise
}

// rules returns the index and the age that count now.
func (r *resolver) rules() (index string, minAge time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.index, r.minAge
}

// network is how packages are downloaded.
type network struct {
	index, toUV string       // as of wheels.Cache; what uv has to be told
	proxy       string       // pip's, which uv has to be told
	client      *http.Client // as of wheels.Cache
}

// network returns how packages are downloaded: from the index of the settings, or else from that of
// uv or pip, whose files it reads.
func (r *resolver) network() network {
	index, _ := r.rules()
	n := network{index: index, toUV: index, proxy: wheels.ProxyFrom(os.Getenv, settingsOf(r.trust))}
	if n.index == "" {
		var ofUV bool
		if n.index, ofUV = wheels.IndexFrom(os.Getenv, settingsOf(r.trust)); !ofUV {
			n.toUV = n.index
		}
	}
	n.client = through(n.proxy)
	return n
}

// settingsOf returns what reads a file of uv's or pip's that no one but its owners could have
// written.
func settingsOf(owners trust.Owners) func(file string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		if err := owners.File(file); err != nil {
			return nil, err
		}
		return os.ReadFile(file)
	}
}

// through returns a client that uses a proxy, or nil if none is named or its URL can't be read.
// NO_PROXY doesn't count then, as with pip.
func through(proxy string) *http.Client {
	at, err := url.Parse(proxy)
	if proxy == "" || err != nil || at.Host == "" {
		return nil
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = http.ProxyURL(at)
	return &http.Client{Transport: t}
}

// compile has uv write a lock to the directory, and returns it.
func (r *resolver) compile(ctx context.Context, program, dir, wanted string,
	ip wheels.Interpreter) ([]byte, error) {
	index, minAge := r.rules()
	settings, err := wheels.UVSettings(os.Getenv, settingsOf(r.trust), index == "")
	if err != nil {
		return nil, err
	}
	config, made := filepath.Join(dir, "uv.toml"), filepath.Join(dir, "pylock.toml")
	if err := os.WriteFile(config, settings, 0o600); err != nil { // an index can have a password
		return nil, err
	}
	oldest := time.Now().Add(-cmp.Or(minAge, young))
	cmd := exec.CommandContext(ctx, program, "pip", "compile", "--config-file", config, "--quiet", "--no-header",
		"--only-binary", ":all:", "--exclude-newer", oldest.UTC().Format(time.RFC3339), "--format", "pylock.toml",
		"--python-version", ip.Version, "--python-platform", ip.Platform(), "--output-file", made, "-")
	said := &runtime.Tail{Limit: 4 << 10}
	cmd.Dir, cmd.Stdin, cmd.Stderr, cmd.Env = dir, strings.NewReader(wanted), said, r.environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("uv: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return os.ReadFile(made)
}

// Of its own variables uv gets those that say where packages come from, unless a policy says it,
// and how that is reached. Others, such as UV_CONFIG_FILE, can have it build some.
var (
	uvIndexes = []string{"UV_INDEX", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_NO_INDEX",
		"UV_FIND_LINKS"}
	uvVariables = []string{"UV_KEYRING_PROVIDER", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_INSECURE_HOST",
		"UV_OFFLINE", "UV_CACHE_DIR", "UV_HTTP_TIMEOUT"}
)

// environ returns the environment of uv: what engines' programs have, its own variables, and
// the index and the proxy, unless they come from its own settings. An index of the policy is the
// only one. uv downloads no Python, and runs none of a .venv above its directory.
func (r *resolver) environ() []string {
	env := append(runtime.EngineEnviron(), "UV_PYTHON_DOWNLOADS=never", "UV_SYSTEM_PYTHON=1")
	index, _ := r.rules()
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		takes := slices.Contains(uvVariables, name) || strings.HasPrefix(name, "UV_INDEX_") // such as a password
		if slices.Contains(uvIndexes, name) {
			takes = index == ""
		}
		if takes {
			env = append(env, kv)
		}
	}
	net := r.network()
	if net.toUV != "" {
		env = append(env, "UV_DEFAULT_INDEX="+net.toUV)
	}
	if net.proxy != "" {
		env = append(env, "HTTPS_PROXY="+net.proxy, "HTTP_PROXY="+net.proxy, "NO_PROXY=")
	}
	return env
}
