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

// baseline starts podman for the baselines and hears what the bridge asks it for.
func (l *lab) baseline(ctx context.Context) (err error) {
	if l.box != nil {
		return nil
	}
	if l.podman, err = startPodman(ctx, l.dir); err != nil {
		return err
	}
	l.box, err = l.listen(ctx)
	return err
}

// exchange is one with a guest that has waited, until it is done.
func (l *lab) exchange(ctx context.Context, code string) (time.Duration, error) {
	g, err := l.podman.launch(ctx, l.box)
	if err != nil {
		return 0, err
	}
	sleep(ctx, pause)
	took, err := g.execute(l.box, code)
	return took, errors.Join(err, g.end(ctx))
}

// podmanRun runs python with print(1) in the same image.
func (l *lab) podmanRun(ctx context.Context) (time.Duration, error) {
	took, out, err := l.podmanCode(ctx, l.box.image, "print(1)")
	if err == nil && out != "1\n" {
		err = fmt.Errorf("it printed %q", out)
	}
	return took, err
}

// podmanCode runs code in an image, with flags that say what runtime/podman/spec.go says by the
// API.
func (l *lab) podmanCode(ctx context.Context, image, code string) (time.Duration, string, error) {
	const flags = "run --rm -i --pull=never --network=none --read-only --read-only-tmpfs=false " +
		"--user=65534:65534 --cap-drop=all --security-opt=no-new-privileges " +
		"--env=PATH=/usr/local/bin:/usr/bin:/bin --no-hosts --ipc=none --uts=private --pid=private " +
		"--cgroupns=private --systemd=false --log-driver=none --image-volume=ignore --no-healthcheck " +
		"--http-proxy=false --passwd=false --timeout=600 --ulimit=nofile=1024:1024 --ulimit=core=0:0"
	argv := strings.Fields(flags)
	for _, dir := range []string{"/workspace", "/tmp", "/ipc", "/dev/shm"} {
		argv = append(argv, "--tmpfs="+dir+":rw,nosuid,nodev,noexec,notmpcopyup,size=64m,mode=1777")
	}
	said := &tail{limit: 2 << 10}
	argv = append(argv, image, "python3", "-I", "-B", "-c", code)
	cmd := exec.CommandContext(ctx, "podman", argv...) //nolint:gosec // a baseline
	cmd.Stderr, cmd.Dir = said, l.dir
	begin := time.Now()
	out, err := cmd.Output()
	took := time.Since(begin)
	if err != nil {
		return 0, "", fmt.Errorf("podman run: %w; %s", err, said)
	}
	return took, string(out), nil
}
