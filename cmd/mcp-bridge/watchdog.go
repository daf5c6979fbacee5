package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

// watchdogName is the command that the bridge starts itself as: see package guard.
const watchdogName = "watchdog"

func watchdogCmd() *cobra.Command {
	return &cobra.Command{
		Use:    watchdogName,
		Short:  "End what a killed bridge left behind; the bridge starts this itself",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			killed, err := guard.Watch(os.Stdin, slog.New(slog.NewTextHandler(watchdogLog(), nil)))
			if !killed {
				return err
			}
			return errors.Join(err, reapOrphans())
		},
	}
}

// appended is a file to which each write is appended. It is opened for each, made when there is
// something to keep, and begun again when it is too big.
type appended struct{ path string }

const maxAppended = 1 << 20 // bytes

// watchdogLog returns where the watchdog says what it has ended: its bridge, and with it standard
// error, is gone by then.
func watchdogLog() io.Writer {
	dir := stateDir()
	if dir == "" {
		return io.Discard
	}
	return appended{filepath.Join(dir, "watchdog.log")}
}

func (a appended) Write(p []byte) (int, error) {
	if err := os.MkdirAll(filepath.Dir(a.path), 0o700); err != nil {
		return 0, err
	}
	flags := os.O_APPEND | os.O_CREATE | os.O_WRONLY
	if i, err := os.Stat(a.path); err == nil && i.Size() > maxAppended {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(a.path, flags, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(p)
	return n, errors.Join(err, f.Close())
}

const (
	reapTimeout = 30 * time.Second // bounds the watchdog's search for containers of a killed bridge
	reapAgain   = 500 * time.Millisecond
)

// reapOrphans removes the containers of bridges that are dead. One that ran has ended by itself,
// with its standard input; one that was created and not yet started would stay for ever.
func reapOrphans() (err error) {
	cfg, err := readConfig()
	if err != nil {
		return err
	}
	d, err := newDriver(cfg, nil, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), reapTimeout)
	defer cancel()
	// it chooses the engine, as the bridge has; one at rest has no containers
	if _, err := d.Facts(ctx); err != nil {
		return err
	}
	_, err = runtime.Reap(ctx, d, runtime.Self())
	select { // what a service had begun when it was killed may come up a little after it
	case <-time.After(reapAgain):
	case <-ctx.Done():
	}
	_, again := runtime.Reap(ctx, d, runtime.Self())
	return errors.Join(err, again)
}

// reapVariables are what the watchdog needs of the environment to find the engine again: never a
// server's secret.
var reapVariables = []string{
	"PATH", "HOME", "USER", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK",
	"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	"CONTAINER_HOST", "CONTAINER_SSHKEY", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF",
	"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS", "DOCKER_TLS_VERIFY",
	"DOCKER_API_VERSION",
	prefix + "_RUNTIME", prefix + "_ALLOW_ROOTFUL",
}

func reapEnviron() []string {
	var env []string
	for _, name := range reapVariables {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
