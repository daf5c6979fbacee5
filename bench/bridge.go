package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// noServers is for calls that use none of the user's.
var noServers = map[string]any{"servers": []string{}}

// A server is an entry of a configuration file.
type server struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// shops returns n servers that the bridge has in it for demos.
func (l *lab) shops(n int) map[string]server {
	all := map[string]server{}
	for i := range n {
		all[fmt.Sprintf("shop%02d", i)] = server{l.bridge, []string{"demo-server"}}
	}
	return all
}

// command returns the bridge with these servers and variables. What the user has set for their own
// bridge is left out.
func (l *lab) command(servers map[string]server, env ...string) (*exec.Cmd, error) {
	if servers == nil {
		servers = map[string]server{}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return nil, err
	}
	l.configs++
	path := filepath.Join(l.dir, fmt.Sprintf("servers-%d.json", l.configs))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(l.bridge) //nolint:gosec // what is measured
	own := func(kv string) bool { return strings.HasPrefix(kv, "MCP_BRIDGE_") }
	cmd.Env = append(slices.DeleteFunc(os.Environ(), own), "MCP_BRIDGE_RUNTIME=podman", "MCP_BRIDGE_ENV=base",
		"MCP_BRIDGE_CONFIG="+path, "XDG_STATE_HOME="+path+".state")
	cmd.Env = append(cmd.Env, env...)
	cmd.Dir = l.dir
	return cmd, nil
}

// serve starts a bridge that has answered initialize.
func (l *lab) serve(ctx context.Context, servers map[string]server, env ...string) (*client, error) {
	cmd, err := l.command(servers, env...)
	if err != nil {
		return nil, err
	}
	return greet(ctx, cmd)
}

func greet(ctx context.Context, cmd *exec.Cmd) (*client, error) {
	c, err := dial(cmd)
	if err != nil {
		return nil, err
	}
	if err := c.initialize(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// warmups is how many calls come before those that are measured: after a few guests of an image the
// bridge sends code that the image's own Python has compiled.
const warmups = 5

// withWarm has f use a bridge whose next call finds a container that waits for it.
func (l *lab) withWarm(
	ctx context.Context, servers map[string]server, f func(*client) error, env ...string,
) error {
	c, err := l.serve(ctx, servers, env...)
	if err != nil {
		return err
	}
	for range warmups {
		if _, _, err := c.python(ctx, "print(1)", "1\n", noServers); err != nil {
			return errors.Join(err, c.close())
		}
		sleep(ctx, pause)
	}
	return errors.Join(f(c), c.close())
}

// podmanRun runs python with print(1) in the same image.
func (l *lab) podmanRun(ctx context.Context) (time.Duration, error) {
	took, out, err := l.podmanCode(ctx, baseImage, "print(1)")
	if err == nil && out != "1\n" {
		err = fmt.Errorf("it printed %q", out)
	}
	return took, err
}

// podmanCode runs code in an image.
func (l *lab) podmanCode(ctx context.Context, image, code string) (time.Duration, string, error) {
	said := &tail{limit: 2 << 10}
	cmd := container(ctx, image, code)
	cmd.Stderr, cmd.Dir = said, l.dir
	begin := time.Now()
	out, err := cmd.Output()
	took := time.Since(begin)
	if err != nil {
		return 0, "", fmt.Errorf("podman run: %w; %s", err, said)
	}
	return took, string(out), nil
}
