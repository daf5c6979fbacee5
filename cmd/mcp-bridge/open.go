package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/telemetry"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// policy reads the file that the user names. Without one, everything is allowed.
func (c config) policy() (*policy.Policy, error) {
	if c.Policy == "" {
		return new(policy.Policy), nil
	}
	return policy.Read(filepath.Clean(c.Policy))
}

// audit opens the file that the user names; nil for none. If it can't be written now, the bridge
// serves all the same, logs why, and refuses each run with the reason until it can.
func (c config) audit(what purpose, log *slog.Logger) (*audit.Log, error) {
	if c.Audit == "" {
		return nil, nil
	}
	l, err := audit.Open(audit.Config{Path: filepath.Clean(c.Audit), Arguments: c.AuditArguments})
	var unwritable *audit.Error
	if errors.As(err, &unwritable) {
		if what.serves() {
			log.Error("no code will be run", text.Next(err)...)
		}
		err = nil
	}
	return l, err
}

// artifacts returns where the files of runs are written to; nil for nowhere. A user without a home
// has no such place unless the setting names one.
func (c config) artifacts(log *slog.Logger) (*files.Store, error) {
	dir := c.Artifacts
	switch dir {
	case "none":
		return nil, nil
	case "":
		data := userDir("XDG_DATA_HOME", os.UserConfigDir, ".local", "share")
		if data == "" {
			return nil, nil
		}
		dir = filepath.Join(data, "artifacts")
	}
	if about, err := os.Stat(dir); err == nil && !about.IsDir() {
		return nil, exit.Usage(errors.New("MCP_BRIDGE_ARTIFACTS=" + dir + " is no directory; name one, or none"))
	}
	s, err := files.Open(dir, log)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("MCP_BRIDGE_ARTIFACTS: %w", err))
	}
	return s, nil
}

// inputs returns the directories whose files calls may name; nil for none.
func (c config) inputs() (*files.Inputs, error) {
	if len(c.Inputs) == 0 {
		return nil, nil
	}
	in, err := files.NewInputs(c.Inputs)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("MCP_BRIDGE_INPUTS: %w", err))
	}
	return in, nil
}

// checkFiles calls say for each directory of ARTIFACTS and INPUTS, with what is wrong with it, if
// anything. It returns an error with which serve ends.
func (c config) checkFiles(say func(setting, dir string, err error)) error {
	kept, err := c.artifacts(nil)
	if err != nil {
		return err
	}
	if kept != nil {
		say("ARTIFACTS", kept.Dir(), kept.Check())
	}
	if c.Hibernate != "" {
		err := trust.System().OwnDirectory(filepath.Clean(c.Hibernate))
		if errors.Is(err, fs.ErrNotExist) { // it will be made
			err = nil
		}
		say("HIBERNATE", c.Hibernate, err)
	}
	in, err := c.inputs()
	if err != nil || in == nil {
		return err
	}
	problems := in.Check()
	if len(problems) == 0 {
		problems = []error{nil}
	}
	for _, problem := range problems {
		say("INPUTS", in.Dirs(), problem)
	}
	return nil
}

// filesMean says what follows if a directory can't be used.
var filesMean = map[string]string{
	"ARTIFACTS": "files of runs can't be written to their directory",
	"INPUTS":    "calls can't be given files of a directory",
	"HIBERNATE": "serve doesn't start: others could read or replace what sandboxes leave",
}

// openTools opens where servers' tools are kept for searches; nil if the system has no such
// place.
func openTools() *catalog.Store {
	dir := cacheDir()
	if dir == "" {
		return nil
	}
	return catalog.OpenStore(filepath.Join(dir, "tools"))
}

// keep keeps what a server has just said of its tools.
func (p *parts) keep(server discovery.Server, _, purpose string, tools []upstream.Tool) {
	list := catalog.List{Purpose: purpose, AsOf: time.Now(), Tools: tools}
	if err := p.tools.Save(server.Identity(), list); err != nil {
		p.log.Warn("a server's tools could not be kept for later searches", "server", server.Name, "err", err)
	}
}

// startTelemetry begins to export what the OTEL_* variables ask for. A mistake in them is logged.
func startTelemetry(log *slog.Logger) *telemetry.Telemetry {
	t, err := telemetry.Start(context.Background(),
		telemetry.Config{Name: bridge.Name, Version: version(), Getenv: os.Getenv, Log: log})
	if err != nil {
		log.Warn("no traces and metrics are exported", "err", err)
	}
	return t
}

// closeTelemetry sends what is left. A collector that isn't there is no failure of the program.
func closeTelemetry(t *telemetry.Telemetry, log *slog.Logger) {
	if t == nil {
		return
	}
	if err := t.Close(context.Background()); err != nil {
		log.Warn("the last traces or metrics were not sent", "err", err)
	}
}

// cacheDir returns where answers that take long to find are kept; empty if the system has no such
// place.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "mcp-bridge")
}

// stateDir returns where programs keep what lasts and isn't configuration.
func stateDir() string {
	local := func() (string, error) { return os.Getenv("LOCALAPPDATA"), nil }
	if goruntime.GOOS != "windows" {
		local = nil
	}
	return userDir("XDG_STATE_HOME", local, ".local", "state")
}

// userDir returns our directory of a kind: where the variable of the XDG Base Directory
// Specification says, else the system's own, else below the home directory. It is empty if there is
// no such place.
func userDir(variable string, system func() (string, error), below ...string) string {
	const own = "mcp-bridge"
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, own)
	}
	if system != nil && (goruntime.GOOS == "darwin" || goruntime.GOOS == "windows") {
		if dir, err := system(); err == nil && dir != "" {
			return filepath.Join(dir, own)
		}
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(append(append([]string{home}, below...), own)...)
}
