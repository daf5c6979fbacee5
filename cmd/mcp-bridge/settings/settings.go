// Package settings reads what the user has set: the variables MCP_BRIDGE_*, and the directories of
// the XDG Base Directory Specification.
package settings

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
	"github.com/mcp-bridge/mcp-bridge/runtime/image"
	"github.com/mcp-bridge/mcp-bridge/runtime/seccomp"
)

// Prefix is what the names of all variables begin with.
const Prefix = "MCP_BRIDGE"

// Kubernetes says that this program has a client for Kubernetes; its build tag sets it.
var Kubernetes bool

// Settings is the environment. Each field is a variable with the prefix MCP_BRIDGE_; Help and
// docs/settings.md have the same list.
type Settings struct {
	Runtime            string
	Image              string
	Pull               string  `default:"missing"`
	Timeout            Seconds `default:"30"`
	MaxTimeout         Seconds `split_words:"true" default:"120"`
	Memory             size    `default:"512m"`
	PIDs               int64   `envconfig:"PIDS" default:"128"`
	CPUs               float64 `envconfig:"CPUS" default:"0"`
	ContainerUser      string  `split_words:"true" default:"65534:65534"`
	RuntimeIdleTimeout Seconds `split_words:"true" default:"300"`
	Standby            count   `default:"1"`
	MaxConcurrent      count   `split_words:"true" default:"auto"`
	Queue              int     `default:"64"`
	QueueTimeout       Seconds `split_words:"true" default:"30"`
	Tools              tools   `default:"code"`
	State              string  `default:"none"`
	Sandboxes          count   `default:"auto"`
	SandboxIdle        Seconds `split_words:"true" default:"1800"`
	SandboxMaxAge      Seconds `split_words:"true" default:"28800"`
	Hibernate          string
	UpstreamStart      Seconds `envconfig:"UPSTREAM_START_TIMEOUT" default:"20"`
	UpstreamIdle       Seconds `envconfig:"UPSTREAM_IDLE_TIMEOUT" default:"900"`
	UpstreamRoots      string  `split_words:"true" default:"none"`
	Artifacts          string
	Inputs             pathList
	Config             pathList
	Policy             string
	Env                string
	Envs               string
	Audit              string
	AuditArguments     bool       `split_words:"true" default:"false"`
	Output             size       `default:"16k"`
	OutputMode         string     `split_words:"true" default:"text"`
	LogLevel           slog.Level `split_words:"true"`
	LogFormat          string     `split_words:"true" default:"text"`
	Seccomp            string     `default:"strict"`
	OCIRuntime         string     `envconfig:"OCI_RUNTIME"`
	AllowRootful       bool       `split_words:"true" default:"false"`
	Replica            bridge.Replica
	HTTPTokens         string `envconfig:"HTTP_TOKENS"`
	HTTPIssuer         string `envconfig:"HTTP_ISSUER"`
	HTTPAudience       string `envconfig:"HTTP_AUDIENCE"`
}

// internal variables are set by the bridge itself, or for its tests.
func internal(name string) bool {
	return name == Prefix+"_DEPTH" || strings.HasPrefix(name, Prefix+"_TEST_")
}

// Read reads the environment. An unknown variable with our prefix is an error that names the
// nearest one.
func Read() (Settings, error) {
	var s Settings
	if err := unknownVariable(os.Environ()); err != nil {
		return s, exit.Usage(err)
	}
	if err := unsetEmpty(); err != nil {
		return s, err
	}
	if err := envconfig.Process(Prefix, &s); err != nil {
		if parse, ok := errors.AsType[*envconfig.ParseError](err); ok {
			err = fmt.Errorf("%s=%q: %w", parse.KeyName, parse.Value, unparsed(parse))
		}
		return s, exit.Usage(err)
	}
	if _, chosen := os.LookupEnv(Prefix + "_TIMEOUT"); !chosen {
		s.Timeout = min(s.Timeout, s.MaxTimeout) // lowering the one need not mean setting the other
	}
	if s.OutputMode == "compact" { // the name that the Python project gives the same thing
		s.OutputMode = "text"
	}
	if more := os.Getenv("MCP_SERVERS_CONFIG"); more != "" { // that project's own variable, for one file
		s.Config = append(s.Config, more)
	}
	if err := s.check(); err != nil {
		return s, exit.Usage(err)
	}
	return s, nil
}

// unsetEmpty unsets empty variables, so that they mean their default: hosts write "" for what isn't
// filled in, which envconfig takes for a value.
func unsetEmpty() error {
	for _, name := range Variables() {
		if v, set := os.LookupEnv(name); set && v == "" {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// unparsed returns why a value couldn't be read. Our own types say it themselves; for plain numbers
// strconv's errors name its functions.
func unparsed(e *envconfig.ParseError) error {
	var number *strconv.NumError
	switch {
	case e.TypeName == "bool":
		return errors.New("it must be true or false")
	case e.TypeName == "slog.Level":
		return errors.New("it must be debug, info, warn or error")
	case !errors.As(e.Err, &number):
		return e.Err
	case errors.Is(number.Err, strconv.ErrRange):
		return errors.New("it is too large")
	case strings.HasPrefix(e.TypeName, "float"):
		return errors.New("it must be a number such as 1.5")
	}
	return errors.New("it must be a whole number such as 100")
}

// check returns what is wrong with the values together.
func (s Settings) check() error {
	named := func(name, v string, names ...string) string {
		if slices.Contains(names, v) {
			return ""
		}
		last := len(names) - 1
		return fmt.Sprintf("_%s=%q: it is %s or %s", name, v, strings.Join(names[:last], ", "), names[last])
	}
	unless := func(ok bool, format string, a ...any) string {
		if ok {
			return ""
		}
		return fmt.Sprintf(format, a...)
	}
	within := func(name string, n count, least, most int) string {
		return unless(n == auto || int(n) >= least && int(n) <= most,
			"_%s=\"%d\": it must be a number from %d to %d, or auto", name, n, least, most)
	}
	maxTimeout := time.Duration(s.MaxTimeout)
	for _, wrong := range []string{
		unless(s.Timeout > 0, "_TIMEOUT must be positive"),
		unless(s.MaxTimeout > 0, "_MAX_TIMEOUT must be positive"),
		unless(s.Timeout <= s.MaxTimeout, "_TIMEOUT (%v) is longer than MCP_BRIDGE_MAX_TIMEOUT (%v)",
			time.Duration(s.Timeout), maxTimeout),
		unless(s.Memory >= minMemory, "_MEMORY must be at least %dm: Python itself needs most of that",
			minMemory>>20),
		unless(s.Output >= minOutput && s.Output <= MostOutput, "_OUTPUT must be from %dk to %dm", minOutput>>10,
			MostOutput>>20),
		unless(s.Env == "" || s.Env == environments.Base || environments.ValidName(s.Env),
			"_ENV=%q: it is base, data, or the name of another environment", s.Env),
		unless(s.Envs == "" || filepath.IsAbs(s.Envs), "_ENVS=%q: it must be an absolute path", s.Envs),
		unless(s.PIDs >= minPIDs, "_PIDS must be at least %d: the guest itself needs four", minPIDs),
		unless(s.CPUs >= 0 && !math.IsInf(s.CPUs, 0), "_CPUS must be a number of cores such as 1.5, or 0 for all"),
		within("STANDBY", s.Standby, 0, maxStandby),
		within("MAX_CONCURRENT", s.MaxConcurrent, 1, maxRuns),
		within("SANDBOXES", s.Sandboxes, 0, maxKept),
		unless(s.Queue >= 0 && s.Queue <= maxQueue, "_QUEUE must be a number from 0 to %d", maxQueue),
		unless(s.QueueTimeout > 0, "_QUEUE_TIMEOUT must be positive; MCP_BRIDGE_QUEUE=0 is for no queue"),
		named("STATE", s.State, bridge.StateNone, bridge.StateSession),
		unless(s.State == bridge.StateNone || s.Sandboxes != 0, "_STATE=%s needs sandboxes, and "+
			"MCP_BRIDGE_SANDBOXES is 0", s.State),
		unless(s.Sandboxes != 0 || !bridge.NeedsSandboxes(s.Tools), "_TOOLS has tools that need sandboxes, and "+
			"MCP_BRIDGE_SANDBOXES is 0"),
		unless(s.Hibernate == "" || s.Sandboxes != 0, "_HIBERNATE needs sandboxes, and MCP_BRIDGE_SANDBOXES is 0"),
		unless(s.SandboxIdle > 0, "_SANDBOX_IDLE must be positive"),
		unless(s.SandboxMaxAge > 0, "_SANDBOX_MAX_AGE must be positive"),
		unless(s.UpstreamStart > 0, "_UPSTREAM_START_TIMEOUT must be positive"),
		named("UPSTREAM_ROOTS", s.UpstreamRoots, "none", "client"),
		unless(s.Replica == "" || s.Replica.Valid(), "_REPLICA=%q: it is a name of small letters, digits and "+
			"hyphens, such as bridge-0", s.Replica),
		named("LOG_FORMAT", s.LogFormat, "text", "json"),
		unless(s.OutputMode != "toon",
			"_OUTPUT_MODE=toon: results aren't written as TOON; use text, which is as short, or structured"),
		named("OUTPUT_MODE", s.OutputMode, "text", "structured"),
		named("PULL", s.Pull, "missing", "never", "always"),
		unless(runtimeName.MatchString(s.OCIRuntime), "_OCI_RUNTIME=%q: it is a name that the engine knows, "+
			"such as runc, crun, runsc or krun", s.OCIRuntime),
	} {
		if wrong != "" {
			return errors.New(Prefix + wrong)
		}
	}
	if err := s.checkPaths(); err != nil {
		return err
	}
	if _, err := s.Issuer(nil); err != nil {
		return err
	}
	if err := checkRuntime(s.Runtime); err != nil {
		return err
	}
	if err := runtime.ValidUser(s.ContainerUser); err != nil {
		return fmt.Errorf("MCP_BRIDGE_CONTAINER_USER: %w", err)
	}
	return nil
}

// checkPaths refuses relative paths: they would name files of whatever folder the bridge is started
// in, which may be another user's work.
func (s Settings) checkPaths() error {
	profile := s.Seccomp
	if profile == seccomp.Strict || profile == seccomp.Engine || s.nodesFilter() {
		profile = ""
	}
	for _, given := range []struct{ name, path string }{
		{Prefix + "_POLICY", s.Policy}, {Prefix + "_AUDIT", s.Audit}, {Prefix + "_SECCOMP", profile},
		{Prefix + "_HTTP_TOKENS", s.HTTPTokens}, {Prefix + "_HIBERNATE", s.Hibernate},
	} {
		if given.path != "" && !filepath.IsAbs(given.path) {
			return fmt.Errorf("%s=%q: it is not an absolute path", given.name, given.path)
		}
	}
	for _, path := range s.Config {
		home := path == "~" || strings.HasPrefix(filepath.ToSlash(path), "~/")
		if !home && !filepath.IsAbs(path) {
			return fmt.Errorf("%s_CONFIG and MCP_SERVERS_CONFIG: %q is not an absolute path, nor one below ~",
				Prefix, path)
		}
	}
	return nil
}

// runtimeName keeps out paths, which podman would take too: the variable doesn't name a program.
var runtimeName = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// checkRuntime accepts an engine's name and the URLs that a driver can dial. It never shows a
// password.
func checkRuntime(v string) error {
	if v == "" || v == "podman" || v == "docker" {
		return nil
	}
	switch {
	case IsCluster(v) && !Kubernetes:
		return errors.New("MCP_BRIDGE_RUNTIME=kubernetes: this program was built without Kubernetes, which would " +
			"double its size; use mcp-bridge-kubernetes, or build it: make build-kubernetes")
	case IsCluster(v):
		return nil
	}
	if IsURL(v) {
		u, err := url.Parse(v)
		if err == nil && slices.Contains(urlSchemes, u.Scheme) {
			return nil
		}
		return fmt.Errorf("MCP_BRIDGE_RUNTIME: it is a URL of another kind than %s://",
			strings.Join(urlSchemes, "://, "))
	}
	return fmt.Errorf("MCP_BRIDGE_RUNTIME=%q: it is podman, docker, kubernetes, or the URL of an engine's API "+
		"such as unix:///run/user/1000/podman/podman.sock", v)
}

// urlSchemes are those of the engines' APIs.
var urlSchemes = []string{"unix", "tcp", "http", "https", "ssh", "npipe"}

// IsCluster reports whether a setting names Kubernetes: kubernetes, or
// kubernetes:CONTEXT/NAMESPACE.
func IsCluster(s string) bool { return s == "kubernetes" || strings.HasPrefix(s, "kubernetes:") }

// IsURL reports whether a setting is a URL.
func IsURL(s string) bool { return strings.Contains(s, "://") }

const (
	minMemory = 64 << 20
	minOutput = 1 << 10
	minPIDs   = 16

	// MostOutput is how many bytes are kept of what a run prints.
	MostOutput = 4 << 20
)

// Images returns what to run, in order of preference.
func (s Settings) Images() []string {
	if s.Image != "" {
		return []string{s.Image}
	}
	return []string{"docker.io/library/python:3.12-slim", image.LocalRef}
}

// Logger returns a log that writes to w from the configured level on, or from usual.
func (s Settings) Logger(w io.Writer, usual slog.Level) *slog.Logger {
	if _, chosen := os.LookupEnv(Prefix + "_LOG_LEVEL"); chosen {
		usual = s.LogLevel
	}
	opts := &slog.HandlerOptions{Level: usual}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// Variables returns the names of all fields, in their order.
func Variables() []string {
	var names strings.Builder
	_ = envconfig.Usagef(Prefix, &Settings{}, &names, "{{range .}}{{usage_key .}} {{end}}") // it can't fail
	return strings.Fields(names.String())
}

// foreign are variables of mcp-server-code-execution-mode that have no meaning here, and why.
var foreign = map[string]string{
	"MCP_BRIDGE_STATE_DIR": "what is kept between runs is in a sandbox, and no directory of yours is mounted; " +
		"remove the variable",
	"MCP_BRIDGE_ALLOW_SELF_SERVER": "the bridge never starts itself as one of its servers; remove the " +
		"variable, or set it to 0",
}

func unknownVariable(environ []string) error {
	known := Variables()
	own := make([]string, 0, len(known)) // without the prefix, by which all are alike
	for _, name := range known {
		own = append(own, strings.TrimPrefix(name, Prefix))
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, Prefix+"_") || internal(name) || slices.Contains(known, name) {
			continue
		}
		if why, ok := foreign[name]; ok {
			off := slices.Contains([]string{"0", "false", "no"}, strings.ToLower(value))
			if value == "" || off && name == "MCP_BRIDGE_ALLOW_SELF_SERVER" {
				continue
			}
			return fmt.Errorf("%s has no meaning here: %s", name, why)
		}
		near := ""
		if names := text.Nearest(strings.TrimPrefix(name, Prefix), own); names != nil {
			near = " (did you mean " + Prefix + names[0] + "?)"
		}
		return fmt.Errorf("there is no variable %s%s; mcp-bridge serve --help lists them", name, near)
	}
	return nil
}
