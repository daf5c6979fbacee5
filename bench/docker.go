package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// dockerWait bounds the questions whether docker is there.
const dockerWait = 10 * time.Second

// dockerImages are those that the bridge takes by itself, in its order.
var dockerImages = []string{"docker.io/library/python:3.12-slim", "localhost/mcp-bridge/python:latest"}

// dockerFlags are the lock-down in docker's words, written by hand: what the bridge asks docker for is another request than
// podman's. What docker's command line has no word for is left out. The filter of system calls is docker's own here and the strict one
// there; part j has what that may come to.
var dockerFlags = []string{
	"--network=none", "--ipc=private", "--shm-size=33554432", "--cgroupns=private", "--hostname=sandbox", "--read-only", "--cap-drop=ALL",
	"--security-opt=no-new-privileges", "--user=65534:65534", "--log-driver=none", "--no-healthcheck", "--ulimit=nofile=1024:1024", "--ulimit=core=0:0",
	"--tmpfs=/ipc:rw,nosuid,nodev,noexec,size=16777216,mode=1777", "--tmpfs=/tmp:rw,nosuid,nodev,noexec,size=67108864,mode=1777",
	"--tmpfs=/workspace:rw,nosuid,nodev,noexec,size=134217728,mode=1777",
}

// dockerCalls is part d over docker, where there is one that runs without root and has an image.
func (s *suite) dockerCalls(ctx context.Context) (err error) {
	if s.docker.image == "" {
		s.report.note("(docker) not measured here: %s", s.docker.why)
		return nil
	}
	c, err := s.warm(ctx, nil, "MCP_BRIDGE_RUNTIME=docker", "MCP_BRIDGE_STANDBY=0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	argv := append([]string{"docker", "run", "--rm", "-i", "--pull=never"}, dockerFlags...)
	argv = append(argv, s.docker.image, "python3", "-I", "-B", "-c", "print(1)")
	var bridge, docker series
	for range s.scale.docker {
		if ctx.Err() != nil {
			break
		}
		_, took, err := c.python(ctx, "print(1)", "1\n", noServers)
		bridge.took(took, err)
		sleep(ctx, pause)
		docker.took(command(ctx, argv...))
	}
	s.report.figure("docker", "run_python print(1) over docker, MCP_BRIDGE_STANDBY=0", false, "ms", bridge)
	s.report.figure("docker", "docker run --rm of the same image and code", true, "ms", docker)
	s.report.verdict("docker", "cold call ≤ 1.1 × docker run, p50", median(bridge.values)/median(docker.values), "times", 1.1)
	return nil
}

// dockerFound is what was found of docker before the first part, so that who waits is told how long all takes.
type dockerFound struct{ image, why string }

// dockerImage is an image that a docker without root has, or why there is none.
func dockerImage(ctx context.Context) (image, why string) {
	ctx, cancel := context.WithTimeout(ctx, dockerWait)
	defer cancel()
	options, err := exec.CommandContext(ctx, "docker", "info", "--format", "{{.SecurityOptions}}").Output()
	switch {
	case err != nil:
		return "", "no docker answers"
	case !strings.Contains(string(options), "name=rootless"):
		return "", "docker runs as root here"
	}
	for _, name := range dockerImages {
		if exec.CommandContext(ctx, "docker", "image", "inspect", name).Run() == nil { //nolint:gosec // a constant
			return name, ""
		}
	}
	return "", fmt.Sprintf("docker has none of the images %s", strings.Join(dockerImages, ", "))
}
