package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"os"
	"reflect"
	"regexp"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/kelseyhightower/envconfig"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/image"
)

const prefix = "MCP_BRIDGE"

// config is the environment. Each field is a variable with the prefix MCP_BRIDGE_; docs/settings.md has the same list.
type config struct {
	Runtime            string   `desc:"container engine: podman, docker, or the URL of an engine's API; default: the best that is found"`
	Image              string   `desc:"container image with python3; default python:3.12-slim, else one made by mcp-bridge image build"`
	Pull               string   `default:"missing" desc:"when the image is asked for from its registry: missing, never or always"`
	Timeout            seconds  `default:"30" desc:"of a run whose caller names none"`
	MaxTimeout         seconds  `split_words:"true" default:"120" desc:"longest timeout of a run"`
	Memory             size     `default:"512m" desc:"memory of a run, swap counted in"`
	PIDs               int64    `envconfig:"PIDS" default:"128" desc:"processes and threads of a run"`
	CPUs               float64  `envconfig:"CPUS" default:"0" desc:"cores of a run; 0 means all"`
	ContainerUser      string   `split_words:"true" default:"65534:65534" desc:"uid:gid of the code, numbers, neither 0"`
	RuntimeIdleTimeout seconds  `split_words:"true" default:"300" desc:"without a run, until no container is kept ready, and as long again until a podman machine that the bridge started is stopped; 0 never"`
	Standby            standbys `default:"1" desc:"containers that serve keeps ready for the next runs; 0 for none, auto for two a core, or what the memory allows"`
	MaxConcurrent      runs     `split_words:"true" default:"auto" desc:"runs at a time; auto for as many as the machine's memory holds when each takes all that it may, from 2 to 32"`
	Queue              int      `default:"64" desc:"calls that may wait for one of those to end, in the order in which they came; 0 for none"`
	QueueTimeout       seconds  `split_words:"true" default:"30" desc:"longest that a call waits for that"`
	UpstreamStart      seconds  `envconfig:"UPSTREAM_START_TIMEOUT" default:"20" desc:"longest that a server may take to start"`
	UpstreamIdle       seconds  `envconfig:"UPSTREAM_IDLE_TIMEOUT" default:"900" desc:"without use, until a server is ended; the next call starts it again; 0 never"`
	UpstreamRoots      string   `split_words:"true" default:"none" desc:"directories that servers hear of when they ask: none, or client for those that the client gives"`
	Artifacts          string   `desc:"directory of the user's that takes the files which runs of serve hand over: a path, or none; default: mcp-bridge/artifacts in the user's data directory"`
	Inputs             pathList `desc:"directories whose files calls may name, to be copied to their code; default: none, and no such argument"`
	Config             pathList `desc:"files and directories with server definitions, read before all others"`
	Policy             string   `desc:"file that says which tools code may call: see docs/policy.md; default: all"`
	Audit              string   `desc:"file that takes a line of JSON for each run and each call of a tool; nothing is run while it can't be written"`
	AuditArguments     yes      `split_words:"true" default:"false" desc:"have those lines hold the arguments too, not only their size and hash"`
	Output             size     `default:"16k" desc:"of what a run prints, the part that its result shows; read_output gives the rest"`
	OutputMode         string   `split_words:"true" default:"text" desc:"text for models, structured for programs"`
	LogLevel           level    `split_words:"true" desc:"debug, info, warn or error; default info for serve, warn for the rest"`
	LogFormat          string   `split_words:"true" default:"text" desc:"text or json, on stderr"`
	Seccomp            string   `default:"strict" desc:"system call filter that the engine sets: strict, engine for its default, or the path of a profile"`
	OCIRuntime         string   `envconfig:"OCI_RUNTIME" desc:"what the engine starts containers with, such as runc, crun, runsc or krun; default: its choice"`
	AllowRootful       yes      `split_words:"true" default:"false" desc:"use an engine that runs as root"`
}

// internal variables are set by the bridge itself, or for its tests.
func internal(name string) bool {
	return name == prefix+"_DEPTH" || strings.HasPrefix(name, prefix+"_TEST_")
}

// readConfig reads the environment. A variable with our prefix that we don't know is an error naming the nearest one.
func readConfig() (config, error) {
	var c config
	if err := unknownVariable(os.Environ()); err != nil {
		return c, usageError{err}
	}
	if err := unsetEmpty(); err != nil {
		return c, err
	}
	if err := envconfig.Process(prefix, &c); err != nil {
		var parse *envconfig.ParseError
		if errors.As(err, &parse) {
			err = fmt.Errorf("%s=%q: %w", parse.KeyName, parse.Value, unparsed(parse))
		}
		return c, usageError{err}
	}
	if _, chosen := os.LookupEnv(prefix + "_TIMEOUT"); !chosen {
		c.Timeout = min(c.Timeout, c.MaxTimeout) // whoever lowers the one need not know of the other
	}
	if c.OutputMode == "compact" { // the name that the Python project gives the same thing
		c.OutputMode = "text"
	}
	if more := os.Getenv("MCP_SERVERS_CONFIG"); more != "" { // that project's own variable, for one file
		c.Config = append(c.Config, more)
	}
	if err := c.check(); err != nil {
		return c, usageError{err}
	}
	return c, nil
}

// unsetEmpty has an empty variable mean its default, as hosts write "" for what isn't filled in. Envconfig takes it for a value.
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

// unparsed is why a value couldn't be read. Our own types say it themselves; of plain numbers strconv would tell its functions.
func unparsed(e *envconfig.ParseError) error {
	var number *strconv.NumError
	switch {
	case !errors.As(e.Err, &number):
		return e.Err
	case errors.Is(number.Err, strconv.ErrRange):
		return errors.New("it is too large")
	case strings.HasPrefix(e.TypeName, "float"):
		return errors.New("it must be a number such as 1.5")
	}
	return errors.New("it must be a whole number such as 100")
}

func (c config) check() error {
	switch {
	case c.Timeout <= 0 || c.MaxTimeout <= 0:
		return errors.New("MCP_BRIDGE_TIMEOUT and MCP_BRIDGE_MAX_TIMEOUT must be positive")
	case c.Timeout > c.MaxTimeout:
		return fmt.Errorf("MCP_BRIDGE_TIMEOUT (%v) is longer than MCP_BRIDGE_MAX_TIMEOUT (%v)", time.Duration(c.Timeout), time.Duration(c.MaxTimeout))
	case c.Memory < minMemory:
		return fmt.Errorf("MCP_BRIDGE_MEMORY must be at least %dm: Python itself needs most of that", minMemory>>20)
	case c.Output < minOutput || c.Output > outputLimit:
		return fmt.Errorf("MCP_BRIDGE_OUTPUT must be from %dk to %dm", minOutput>>10, outputLimit>>20)
	case c.PIDs < minPIDs:
		return fmt.Errorf("MCP_BRIDGE_PIDS must be at least %d: the guest itself needs four", minPIDs)
	case c.CPUs < 0 || math.IsNaN(c.CPUs) || math.IsInf(c.CPUs, 0):
		return errors.New("MCP_BRIDGE_CPUS must be a number of cores such as 1.5, or 0 for all")
	case c.RuntimeIdleTimeout < 0:
		return errors.New("MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT must not be negative")
	case c.Queue < 0 || c.Queue > maxQueue:
		return fmt.Errorf("MCP_BRIDGE_QUEUE must be a number from 0 to %d", maxQueue)
	case c.QueueTimeout <= 0:
		return errors.New("MCP_BRIDGE_QUEUE_TIMEOUT must be positive; MCP_BRIDGE_QUEUE=0 is for no queue")
	case c.UpstreamStart <= 0:
		return errors.New("MCP_BRIDGE_UPSTREAM_START_TIMEOUT must be positive")
	case c.UpstreamRoots != "none" && c.UpstreamRoots != "client":
		return fmt.Errorf("MCP_BRIDGE_UPSTREAM_ROOTS=%q: it is none or client", c.UpstreamRoots)
	case c.LogFormat != "text" && c.LogFormat != "json":
		return fmt.Errorf("MCP_BRIDGE_LOG_FORMAT=%q: it is text or json", c.LogFormat)
	case c.OutputMode == "toon":
		return errors.New("MCP_BRIDGE_OUTPUT_MODE=toon: results aren't written as TOON; use text, which is as short, or structured")
	case c.OutputMode != "text" && c.OutputMode != "structured":
		return fmt.Errorf("MCP_BRIDGE_OUTPUT_MODE=%q: it is text or structured", c.OutputMode)
	case !slices.Contains([]string{"missing", "never", "always"}, c.Pull):
		return fmt.Errorf("MCP_BRIDGE_PULL=%q: it is missing, never or always", c.Pull)
	case !runtimeName.MatchString(c.OCIRuntime):
		return fmt.Errorf("MCP_BRIDGE_OCI_RUNTIME=%q: it is a name that the engine knows, such as runc, crun, runsc or krun", c.OCIRuntime)
	}
	if err := checkRuntime(c.Runtime); err != nil {
		return err
	}
	if err := runtime.ValidUser(c.ContainerUser); err != nil {
		return fmt.Errorf("MCP_BRIDGE_CONTAINER_USER: %w", err)
	}
	return nil
}

// runtimeName keeps out paths, which podman would take too: whoever sets this variable isn't to name a program.
var runtimeName = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// checkRuntime accepts an engine's name and the URLs that a driver can dial. It never shows a password.
func checkRuntime(v string) error {
	if v == "" || v == "podman" || v == "docker" {
		return nil
	}
	if isURL(v) {
		u, err := url.Parse(v)
		if err == nil && slices.Contains(urlSchemes, u.Scheme) {
			return nil
		}
		return fmt.Errorf("MCP_BRIDGE_RUNTIME: it is a URL of another kind than %s://", strings.Join(urlSchemes, "://, "))
	}
	return fmt.Errorf("MCP_BRIDGE_RUNTIME=%q: it is podman, docker, or the URL of an engine's API such as unix:///run/user/1000/podman/podman.sock", v)
}

const (
	minMemory = 64 << 20
	minOutput = 1 << 10
	minPIDs   = 16
)

// images are what to run, in order of preference.
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

// variables are the names of all fields.
func variables() []string {
	var names []string
	for f := range fieldsOf(reflect.TypeFor[config]()) {
		names = append(names, f)
	}
	return names
}

func fieldsOf(t reflect.Type) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := range t.NumField() {
			name := t.Field(i).Tag.Get("envconfig")
			if name == "" {
				name = snake(t.Field(i).Name)
			}
			if !yield(prefix + "_" + name) {
				return
			}
		}
	}
}

// snake writes MaxTimeout as MAX_TIMEOUT.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// foreign are variables of the Python project with the same purpose that have no meaning here, and why.
var foreign = map[string]string{
	"MCP_BRIDGE_STATE_DIR":         "nothing is kept between runs, and no directory of yours is mounted; remove the variable",
	"MCP_BRIDGE_ALLOW_SELF_SERVER": "the bridge never starts itself as one of its servers; remove the variable, or set it to 0",
}

func unknownVariable(environ []string) error {
	known := variables()
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, prefix+"_") || internal(name) || slices.Contains(known, name) {
			continue
		}
		if why, ok := foreign[name]; ok {
			if value == "" || name == "MCP_BRIDGE_ALLOW_SELF_SERVER" && slices.Contains([]string{"0", "false", "no"}, strings.ToLower(value)) {
				continue
			}
			return fmt.Errorf("%s has no meaning here: %s", name, why)
		}
		near := ""
		if names := text.Nearest(name, known); names != nil {
			near = "; did you mean " + names[0] + "?"
		}
		return fmt.Errorf("there is no variable %s%s (mcp-bridge serve --help lists them)", name, near)
	}
	return nil
}

// seconds is a duration: "30" and "30s" are the same.
type seconds time.Duration

// Decode implements envconfig.Decoder.
func (s *seconds) Decode(v string) error {
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		if !(n >= 0 && n < 1e9) {
			return errors.New("it must be a number of seconds such as 30")
		}
		*s = seconds(n * float64(time.Second))
		return nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return errors.New("it must be a duration such as 30, 30s or 2m")
	}
	*s = seconds(d)
	return nil
}

// size is bytes: "512m" and "536870912" are the same.
type size int64

// Decode implements envconfig.Decoder.
func (s *size) Decode(v string) error {
	n, err := units.RAMInBytes(v)
	if err != nil || n < 0 {
		return errors.New("it must be a size such as 512m or 1g")
	}
	*s = size(n)
	return nil
}

// yes is a boolean.
type yes bool

// Decode implements envconfig.Decoder.
func (y *yes) Decode(v string) error {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return errors.New("it must be true or false")
	}
	*y = yes(b)
	return nil
}

// level is a slog.Level, if one was chosen.
type level struct {
	slog.Level
	set bool
}

// Decode implements envconfig.Decoder.
func (l *level) Decode(v string) error {
	if err := l.UnmarshalText([]byte(v)); err != nil {
		return errors.New("it must be debug, info, warn or error")
	}
	l.set = true
	return nil
}

// runs is a number of runs at a time; 0 for auto.
type runs int

const (
	maxRuns     = 256 // no client has more requests under way
	maxQueue    = 256
	minAutoRuns = 2
	maxAutoRuns = 32
)

// Decode implements envconfig.Decoder.
func (n *runs) Decode(v string) error {
	if v == "auto" {
		*n = 0
		return nil
	}
	i, err := strconv.Atoi(v)
	if err != nil || i < 1 || i > maxRuns {
		return fmt.Errorf("it must be a number from 1 to %d, or auto", maxRuns)
	}
	*n = runs(i)
	return nil
}

// maxConcurrent is how many runs take place at a time. It goes by memory, since that is what runs can't share: with fewer cores each takes
// longer, and most wait for their tools anyway; without memory the machine fails. A quarter is left to everything else.
func (c config) maxConcurrent() int {
	if c.MaxConcurrent > 0 {
		return int(c.MaxConcurrent)
	}
	total, known := memory("MemTotal")
	if !known { // the engine is in a machine of its own, or will be
		return maxAutoRuns
	}
	return int(min(max(minAutoRuns, total/4*3/int64(c.Memory)), maxAutoRuns))
}

// standbys is a number of containers.
type standbys int

const (
	maxStandbys   = 32
	standbyMemory = 32 << 20 // bytes that one which waits takes, at most
)

// Decode implements envconfig.Decoder.
func (n *standbys) Decode(v string) error {
	if v == "auto" {
		*n = standbys(min(max(1, freeMemory()/8/standbyMemory), int64(2*goruntime.NumCPU())))
		return nil
	}
	i, err := strconv.Atoi(v)
	if err != nil || i < 0 || i > maxStandbys {
		return fmt.Errorf("it must be a number from 0 to %d, or auto", maxStandbys)
	}
	*n = standbys(i)
	return nil
}

// freeMemory is bytes that can be had without harm to others, or a guess.
func freeMemory() int64 {
	if n, known := memory("MemAvailable"); known {
		return n
	}
	return 1 << 30
}

// memory is one of the figures of proc_meminfo(5), in bytes, where there is such a file.
func memory(name string) (n int64, known bool) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, name+": %d kB", &kib); n == 1 {
			return kib << 10, true
		}
	}
	return 0, false
}
