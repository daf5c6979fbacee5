package main

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

const prefix = "MCP_BRIDGE"

// config is the environment. Each field is a variable with the prefix MCP_BRIDGE_; serve --help and
// docs/settings.md have the same list.
type config struct {
	Runtime            string
	Image              string
	Pull               string   `default:"missing"`
	Timeout            seconds  `default:"30"`
	MaxTimeout         seconds  `split_words:"true" default:"120"`
	Memory             size     `default:"512m"`
	PIDs               int64    `envconfig:"PIDS" default:"128"`
	CPUs               float64  `envconfig:"CPUS" default:"0"`
	ContainerUser      string   `split_words:"true" default:"65534:65534"`
	RuntimeIdleTimeout seconds  `split_words:"true" default:"300"`
	Standby            standbys `default:"1"`
	MaxConcurrent      runs     `split_words:"true" default:"auto"`
	Queue              int      `default:"64"`
	QueueTimeout       seconds  `split_words:"true" default:"30"`
	Tools              tools    `default:"code"`
	State              string   `default:"none"`
	Sandboxes          kept     `default:"auto"`
	SandboxIdle        seconds  `split_words:"true" default:"1800"`
	SandboxMaxAge      seconds  `split_words:"true" default:"28800"`
	Hibernate          string
	UpstreamStart      seconds `envconfig:"UPSTREAM_START_TIMEOUT" default:"20"`
	UpstreamIdle       seconds `envconfig:"UPSTREAM_IDLE_TIMEOUT" default:"900"`
	UpstreamRoots      string  `split_words:"true" default:"none"`
	Artifacts          string
	Inputs             pathList
	Config             pathList
	Policy             string
	Env                string
	Envs               string
	Audit              string
	AuditArguments     bool   `split_words:"true" default:"false"`
	Output             size   `default:"16k"`
	OutputMode         string `split_words:"true" default:"text"`
	LogLevel           level  `split_words:"true"`
	LogFormat          string `split_words:"true" default:"text"`
	Seccomp            string `default:"strict"`
	OCIRuntime         string `envconfig:"OCI_RUNTIME"`
	AllowRootful       bool   `split_words:"true" default:"false"`
	Replica            bridge.Replica
	HTTPTokens         string `envconfig:"HTTP_TOKENS"`
	HTTPIssuer         string `envconfig:"HTTP_ISSUER"`
	HTTPAudience       string `envconfig:"HTTP_AUDIENCE"`
}

// internal variables are set by the bridge itself, or for its tests.
func internal(name string) bool {
	return name == prefix+"_DEPTH" || strings.HasPrefix(name, prefix+"_TEST_")
}

// readConfig reads the environment. An unknown variable with our prefix is an error that names the
// nearest one.
func readConfig() (config, error) {
	var c config
	if err := unknownVariable(os.Environ()); err != nil {
		return c, exit.Usage(err)
	}
	if err := unsetEmpty(); err != nil {
		return c, err
	}
	if err := envconfig.Process(prefix, &c); err != nil {
		var parse *envconfig.ParseError
		if errors.As(err, &parse) {
			err = fmt.Errorf("%s=%q: %w", parse.KeyName, parse.Value, unparsed(parse))
		}
		return c, exit.Usage(err)
	}
	if _, chosen := os.LookupEnv(prefix + "_TIMEOUT"); !chosen {
		c.Timeout = min(c.Timeout, c.MaxTimeout) // lowering the one need not mean setting the other
	}
	if c.OutputMode == "compact" { // the name that the Python project gives the same thing
		c.OutputMode = "text"
	}
	if more := os.Getenv("MCP_SERVERS_CONFIG"); more != "" { // that project's own variable, for one file
		c.Config = append(c.Config, more)
	}
	if err := c.check(); err != nil {
		return c, exit.Usage(err)
	}
	return c, nil
}

// unsetEmpty unsets empty variables, so that they mean their default: hosts write "" for what isn't
// filled in, which envconfig takes for a value.
func unsetEmpty() error {
	for _, name := range variables() {
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
func (c config) check() error {
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
	maxTimeout := time.Duration(c.MaxTimeout)
	for _, wrong := range []string{
		unless(c.Timeout > 0, "_TIMEOUT must be positive"),
		unless(c.MaxTimeout > 0, "_MAX_TIMEOUT must be positive"),
		unless(c.Timeout <= c.MaxTimeout, "_TIMEOUT (%v) is longer than MCP_BRIDGE_MAX_TIMEOUT (%v)",
			time.Duration(c.Timeout), maxTimeout),
		unless(c.Memory >= minMemory, "_MEMORY must be at least %dm: Python itself needs most of that",
			minMemory>>20),
		unless(c.Output >= minOutput && c.Output <= outputLimit, "_OUTPUT must be from %dk to %dm", minOutput>>10,
			outputLimit>>20),
		unless(c.Env == "" || c.Env == environments.Base || environments.ValidName(c.Env),
			"_ENV=%q: it is base, data, or the name of another environment", c.Env),
		unless(c.Envs == "" || filepath.IsAbs(c.Envs), "_ENVS=%q: it must be an absolute path", c.Envs),
		unless(c.PIDs >= minPIDs, "_PIDS must be at least %d: the guest itself needs four", minPIDs),
		unless(c.CPUs >= 0 && !math.IsInf(c.CPUs, 0), "_CPUS must be a number of cores such as 1.5, or 0 for all"),
		unless(c.Queue >= 0 && c.Queue <= maxQueue, "_QUEUE must be a number from 0 to %d", maxQueue),
		unless(c.QueueTimeout > 0, "_QUEUE_TIMEOUT must be positive; MCP_BRIDGE_QUEUE=0 is for no queue"),
		named("STATE", c.State, bridge.StateNone, bridge.StateSession),
		unless(c.State == bridge.StateNone || c.Sandboxes != 0, "_STATE=%s needs sandboxes, and "+
			"MCP_BRIDGE_SANDBOXES is 0", c.State),
		unless(c.Sandboxes != 0 || !bridge.NeedsSandboxes(c.Tools), "_TOOLS has tools that need sandboxes, and "+
			"MCP_BRIDGE_SANDBOXES is 0"),
		unless(c.Hibernate == "" || c.Sandboxes != 0, "_HIBERNATE needs sandboxes, and MCP_BRIDGE_SANDBOXES is 0"),
		unless(c.SandboxIdle > 0, "_SANDBOX_IDLE must be positive"),
		unless(c.SandboxMaxAge > 0, "_SANDBOX_MAX_AGE must be positive"),
		unless(c.UpstreamStart > 0, "_UPSTREAM_START_TIMEOUT must be positive"),
		named("UPSTREAM_ROOTS", c.UpstreamRoots, "none", "client"),
		unless(c.Replica == "" || c.Replica.Valid(), "_REPLICA=%q: it is a name of small letters, digits and "+
			"hyphens, such as bridge-0", c.Replica),
		named("LOG_FORMAT", c.LogFormat, "text", "json"),
		unless(c.OutputMode != "toon",
			"_OUTPUT_MODE=toon: results aren't written as TOON; use text, which is as short, or structured"),
		named("OUTPUT_MODE", c.OutputMode, "text", "structured"),
		named("PULL", c.Pull, "missing", "never", "always"),
		unless(runtimeName.MatchString(c.OCIRuntime), "_OCI_RUNTIME=%q: it is a name that the engine knows, "+
			"such as runc, crun, runsc or krun", c.OCIRuntime),
	} {
		if wrong != "" {
			return errors.New(prefix + wrong)
		}
	}
	if err := c.checkPaths(); err != nil {
		return err
	}
	if _, err := c.issuer(nil); err != nil {
		return err
	}
	if err := checkRuntime(c.Runtime); err != nil {
		return err
	}
	if err := runtime.ValidUser(c.ContainerUser); err != nil {
		return fmt.Errorf("MCP_BRIDGE_CONTAINER_USER: %w", err)
	}
	return nil
}

// checkPaths refuses relative paths: they would name files of whatever folder the bridge is started
// in, which may be another user's work.
func (c config) checkPaths() error {
	profile := c.Seccomp
	if profile == seccomp.Strict || profile == seccomp.Engine || c.nodesFilter() {
		profile = ""
	}
	for _, given := range []struct{ name, path string }{
		{prefix + "_POLICY", c.Policy}, {prefix + "_AUDIT", c.Audit}, {prefix + "_SECCOMP", profile},
		{prefix + "_HTTP_TOKENS", c.HTTPTokens}, {prefix + "_HIBERNATE", c.Hibernate},
	} {
		if given.path != "" && !filepath.IsAbs(given.path) {
			return fmt.Errorf("%s=%q: it is not an absolute path", given.name, given.path)
		}
	}
	for _, path := range c.Config {
		home := path == "~" || strings.HasPrefix(filepath.ToSlash(path), "~/")
		if !home && !filepath.IsAbs(path) {
			return fmt.Errorf("%s_CONFIG and MCP_SERVERS_CONFIG: %q is not an absolute path, nor one below ~",
				prefix, path)
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
	case isCluster(v) && newCluster == nil:
		return errors.New("MCP_BRIDGE_RUNTIME=kubernetes: this program was built without Kubernetes, which would " +
			"double its size; use mcp-bridge-kubernetes, or build it: make build-kubernetes")
	case isCluster(v):
		return nil
	}
	if isURL(v) {
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

const (
	minMemory = 64 << 20
	minOutput = 1 << 10
	minPIDs   = 16
)

// replica returns the bridge's name among those behind one URL. A client of stdio has but one.
func (c config) replica(what purpose) bridge.Replica {
	if what != listening {
		return ""
	}
	return c.Replica
}

// images returns what to run, in order of preference.
func (c config) images() []string {
	if c.Image != "" {
		return []string{c.Image}
	}
	return []string{"docker.io/library/python:3.12-slim", image.LocalRef}
}

// logger writes to w from the configured level on, or from usual.
func (c config) logger(w io.Writer, usual slog.Level) *slog.Logger {
	if c.LogLevel.set {
		usual = c.LogLevel.Level
	}
	opts := &slog.HandlerOptions{Level: usual}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// variables returns the names of all fields, in their order.
func variables() []string {
	var names strings.Builder
	_ = envconfig.Usagef(prefix, &config{}, &names, "{{range .}}{{usage_key .}} {{end}}") // it can't fail
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
	known := variables()
	own := make([]string, 0, len(known)) // without the prefix, by which all are alike
	for _, name := range known {
		own = append(own, strings.TrimPrefix(name, prefix))
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, prefix+"_") || internal(name) || slices.Contains(known, name) {
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
		if names := text.Nearest(strings.TrimPrefix(name, prefix), own); names != nil {
			near = "; did you mean " + prefix + names[0] + "?"
		}
		return fmt.Errorf("there is no variable %s%s (mcp-bridge serve --help lists them)", name, near)
	}
	return nil
}
