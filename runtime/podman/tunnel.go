//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// tunnel starts ssh as a child, which brings the engine's socket on another machine to a private
// one here. It takes the place of the bindings' own ssh, which accepts the key of a host that it
// doesn't know, asks for a password on our standard input, which is MCP's, heeds no context, and is
// never closed. And it follows the user's own ssh settings: aliases, jumps, agents.
func (p *program) tunnel(ctx context.Context, u *url.URL, key string) (*child, error) {
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return nil, err
	}
	args, err := sshArgs(u, key)
	if err != nil {
		return nil, err
	}
	path := u.Path
	if path == "" || path == "/" {
		if path, err = askSocket(ctx, ssh, args); err != nil {
			return nil, err
		}
	}
	if !plainPath.MatchString(path) {
		return nil, fmt.Errorf("the socket's path %q has characters that ssh would interpret", path)
	}
	t, err := p.launch("ssh", func(socket string) *exec.Cmd {
		cmd := exec.Command(ssh, append([]string{"-N", "-L", socket + ":" + path}, args...)...)
		cmd.Env = runtime.EngineEnviron()
		return cmd
	})
	if err != nil {
		return nil, err
	}
	if err := t.listens(ctx); err != nil {
		t.stop()
		return nil, err
	}
	return t, nil
}

// plainPath has nothing that ssh expands or splits at.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9/._@+=-]+$`)

// sshArgs returns the arguments with which ssh ends when the host is gone. The key is a file's
// name, or empty for those of ssh's own settings.
func sshArgs(u *url.URL, key string) ([]string, error) {
	options := []string{
		"ExitOnForwardFailure=yes", "ConnectTimeout=4", "ServerAliveInterval=3", "ServerAliveCountMax=2",
		"StreamLocalBindMask=0177",
	}
	if key == "" {
		return engine.SSHArgs(u, options...)
	}
	args, err := engine.SSHArgs(u, append(options, "IdentitiesOnly=yes")...)
	return append([]string{"-i", key}, args...), err
}

// askSocket asks the other machine's podman where it listens.
func askSocket(ctx context.Context, ssh string, args []string) (string, error) {
	said := &runtime.Tail{Limit: 2 << 10}
	cmd := exec.CommandContext(ctx, ssh,
		append(args[:len(args):len(args)], "podman info --format '{{.Host.RemoteSocket.Path}}'")...)
	cmd.Env = runtime.EngineEnviron()
	cmd.Stderr = said
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking podman on that host for its socket: %w: %s", err,
			runtime.OneLine(said.String()))
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "unix://"), nil
}

// byHand returns the command that a person would type to reach the host of an endpoint.
func byHand(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "ssh"
	}
	words := []string{"ssh"}
	if u.Port() != "" {
		words = append(words, "-p", u.Port())
	}
	host := u.Hostname()
	if user := u.User.Username(); user != "" {
		host = user + "@" + host
	}
	return strings.Join(append(words, host), " ")
}
