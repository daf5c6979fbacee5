package environments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

// young is how long a release must have been there before a lock has it, unless Config.MinAge says
// otherwise. Most releases that hold malware are found and withdrawn within days.
const young = 7 * 24 * time.Hour

// Lock has uv choose the versions of all packages in NAME.in and of what they need, for the Python
// of the base image, and writes them to the environment's lock. Neither uv nor anything else
// installs or builds a package.
func (e *Environments) Lock(ctx context.Context, name string) error {
	d, err := e.definition(name)
	if err != nil {
		return err
	}
	if d.Lock == "" {
		return &Error{Err: fmt.Errorf("the lock of %s comes with the program", name),
			Next: "make an environment of another name: mcp-bridge env add NAME PACKAGE…"}
	}
	wanted, err := os.ReadFile(e.requirements(name))
	if errors.Is(err, fs.ErrNotExist) {
		return &Error{Err: fmt.Errorf("%s, which lists the packages, is missing", e.requirements(name)),
			Next: "name them: mcp-bridge env add " + name + " PACKAGE…"}
	} else if err != nil {
		return err
	}
	return e.lockAs(ctx, d, wanted)
}

// Add adds packages, as in pandas>=2, to those of an environment, and locks them. It makes the
// environment if no other has that name. After an error nothing has changed.
func (e *Environments) Add(ctx context.Context, name string, packages []string) error {
	if e.cfg.Dir == "" {
		return errors.New("there is no directory for environments: set HOME or MCP_BRIDGE_ENVS")
	}
	d := Definition{Name: name, File: filepath.Join(e.cfg.Dir, name+".toml"),
		Lock: filepath.Join(e.cfg.Dir, "pylock."+name+".toml")}
	if !ValidName(name) {
		return ErrName
	}
	if _, err := os.Lstat(d.File); err == nil {
		if d, err = e.definition(name); err != nil {
			return err
		}
	}
	if name == Data || d.Lock == "" {
		return &Error{Err: errors.New("what data has comes with the program"),
			Next: "make an environment of another name, and let it have those of data too that you need"}
	}
	wanted, err := os.ReadFile(e.requirements(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if wanted, err = withPackages(wanted, packages); err != nil {
		return err
	}
	if err := os.MkdirAll(e.cfg.Dir, 0o700); err != nil {
		return err
	}
	if err := e.lockAs(ctx, d, wanted); err != nil {
		return err
	}
	if err := filelock.Replace(e.requirements(name), ".in-*", wanted); err != nil {
		return err
	}
	if strings.HasPrefix(name, Auto) {
		defer e.dropAuto(ctx, name)
	}
	if _, err := os.Lstat(d.File); err == nil {
		return nil
	}
	return filelock.Replace(d.File, ".toml-*", fmt.Appendf(nil, template, name))
}

// template is NAME.toml at first.
const template = `# The environment %[1]s. Its packages are in %[1]s.in; mcp-bridge env lock %[1]s chooses
# their versions again. See docs/environments.md.
# image = "docker.io/library/python:3.13-slim"
# imports = ["numpy"]
# [limits]
# memory = "1g"
`

// requirements returns the file that lists the packages of an environment, as pip and uv read it.
func (e *Environments) requirements(name string) string { return filepath.Join(e.cfg.Dir, name+".in") }

// withPackages returns the list with the packages in it, each in place of the line that had it
// before.
func withPackages(list []byte, packages []string) ([]byte, error) {
	added := map[string]string{}
	var order []string
	for _, text := range packages {
		r, err := wheels.ParseRequirement(text)
		if err != nil {
			return nil, err
		}
		if added[r.Name] == "" {
			order = append(order, r.Name)
		}
		added[r.Name] = strings.TrimSpace(text)
	}
	var out strings.Builder
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSuffix(line, "\n")
		bare, _, _ := strings.Cut(line, " #")
		if r, err := wheels.ParseRequirement(bare); err == nil && added[r.Name] != "" {
			line = added[r.Name]
			delete(added, r.Name)
		}
		out.WriteString(line + "\n")
	}
	for _, name := range order {
		if text, has := added[name]; has {
			out.WriteString(text + "\n")
		}
	}
	return []byte(out.String()), nil
}

// asked returns the packages of a list as uv takes them, one a line. Any other line is an error: uv
// would follow an option, such as --no-binary, and build packages. Names are normalized, since uv
// takes one such as x.zip for a file.
func (e *Environments) asked(name string, list []byte) (string, error) {
	var out strings.Builder
	for line := range strings.Lines(string(list)) {
		bare, _, _ := strings.Cut(strings.TrimSpace(line), " #")
		if bare = strings.TrimSpace(bare); bare == "" || bare[0] == '#' {
			continue
		}
		r, err := wheels.ParseRequirement(bare)
		if err != nil {
			return "", &Error{Err: fmt.Errorf("%s: %w", e.requirements(name), err),
				Next: "have one package such as pandas>=2 in each line of the file, and no options"}
		}
		rest := strings.TrimLeftFunc(bare, func(r rune) bool {
			return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("-_.", r)
		})
		out.WriteString(r.Name + rest + "\n")
	}
	return out.String(), nil
}

// lockAs writes the lock of an environment with the packages of a list.
func (e *Environments) lockAs(ctx context.Context, d Definition, list []byte) error {
	wanted, err := e.asked(d.Name, list)
	if err != nil {
		return err
	}
	program, err := exec.LookPath("uv")
	if err != nil {
		return &Error{Err: errors.New("uv, which chooses versions, is not on the PATH"),
			Next: "install it, for example with pipx install uv. Only env add and env lock need it; a lock that was" +
				" made elsewhere can be put into " + d.Lock}
	}
	base, err := e.base(ctx, d)
	if err != nil {
		return err
	}
	p, err := e.ask(ctx, base)
	if err != nil {
		return err
	}
	release, err := e.turn(ctx, nil)
	if err != nil {
		return err
	}
	defer release()
	dir, err := os.MkdirTemp(e.cfg.CacheDir, lockDirs)
	if err != nil {
		return e.full(err)
	}
	defer e.guard(dir)()
	defer func() { _ = os.RemoveAll(dir) }() // what is left goes with the next turn
	text, err := e.compileLock(ctx, program, dir, wanted, p.Interpreter)
	if err != nil {
		return fmt.Errorf("locking the packages of %s: %w", d.Name, err)
	}
	l, err := wheels.Parse(text)
	if err == nil {
		_, err = l.Choose(p.Interpreter)
	}
	if err != nil {
		return fmt.Errorf("uv has locked the packages of %s, and they can't be used: %w", d.Name, err)
	}
	return filelock.Replace(d.Lock, ".lock-*", text)
}

// compileLock has uv write a lock to the directory, and returns it.
func (e *Environments) compileLock(ctx context.Context, program, dir, wanted string,
	ip wheels.Interpreter) ([]byte, error) {
	index, minAge := e.rules()
	settings, err := wheels.UVSettings(os.Getenv, settingsOf(e.cfg.Trust), index == "")
	if err != nil {
		return nil, err
	}
	config, made := filepath.Join(dir, "uv.toml"), filepath.Join(dir, "pylock.toml")
	if err := os.WriteFile(config, settings, 0o600); err != nil { // an index can have a password
		return nil, e.full(err)
	}
	oldest := time.Now().Add(-cmp.Or(minAge, young))
	cmd := exec.CommandContext(ctx, program, "pip", "compile", "--config-file", config, "--quiet", "--no-header",
		"--only-binary", ":all:", "--exclude-newer", oldest.UTC().Format(time.RFC3339), "--format", "pylock.toml",
		"--python-version", ip.Version, "--python-platform", ip.Platform(), "--output-file", made, "-")
	said := &runtime.Tail{Limit: 4 << 10}
	cmd.Dir, cmd.Stdin, cmd.Stderr, cmd.Env = dir, strings.NewReader(wanted), said, e.uvEnviron()
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

// uvEnviron returns the environment of uv: what engines' programs have, its own variables, and
// the index and the proxy, unless they come from its own settings. An index of the policy is the
// only one. uv downloads no Python, and runs none of a .venv above its directory.
func (e *Environments) uvEnviron() []string {
	env := append(runtime.EngineEnviron(), "UV_PYTHON_DOWNLOADS=never", "UV_SYSTEM_PYTHON=1")
	index, _ := e.rules()
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
	net := e.network()
	if net.toUV != "" {
		env = append(env, "UV_DEFAULT_INDEX="+net.toUV)
	}
	if net.proxy != "" {
		env = append(env, "HTTPS_PROXY="+net.proxy, "HTTP_PROXY="+net.proxy, "NO_PROXY=")
	}
	return env
}
