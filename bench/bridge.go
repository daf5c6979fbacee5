package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pause lies between warm calls: a user's next call comes when a container waits again.
const pause = 300 * time.Millisecond

// warmups is how many calls come before those that are measured: after a few guests of an image the
// bridge sends code that the image's own Python has compiled.
const warmups = 5

// rounds returns how many rounds of n are to be run.
func (s *suite) rounds(n int) int {
	if s.quick {
		return 2
	}
	return n
}

// turns takes each figure once a round, after a pause, and adds them to the report.
func (s *suite) turns(
	ctx context.Context, rounds int, pause time.Duration, figures ...*figure,
) error {
	defer s.report.put(figures...)
	for range s.rounds(rounds) {
		for _, f := range figures {
			time.Sleep(pause)
			if err := f.again(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// sustain has callers take a figure again and again, all at once, and adds how often they did so in
// a second, and how long each time took.
func (s *suite) sustain(ctx context.Context, callers int, f *figure) error {
	span := 30 * time.Second
	if s.quick {
		span = 300 * time.Millisecond
	}
	begin := time.Now()
	err := together(callers, func() (err error) {
		for err == nil && time.Since(begin) < span {
			err = f.again(ctx)
		}
		return err
	})
	perSecond := float64(len(f.values)) / time.Since(begin).Seconds()
	rate := figure{name: f.name, unit: "a second", beside: f.beside, values: []float64{perSecond}}
	f.name = "how long each of them took"
	s.report.put(&rate, f)
	return err
}

// together has n callers do something, and returns their errors.
func together(n int, f func() error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// command returns the bridge with a number of the servers that it has in it for demos, and with
// these variables. What the user has set for their own bridge is left out.
func (s *suite) command(servers int, env ...string) (*exec.Cmd, error) {
	all := map[string]any{}
	for i := range servers {
		demo := map[string]any{"command": s.bridge, "args": []string{"demo-server"}}
		all[fmt.Sprintf("shop%02d", i)] = demo
	}
	text, err := json.Marshal(map[string]any{"mcpServers": all})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.dir, "bridge-")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "servers.json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(s.bridge) //nolint:gosec // what is measured
	own := func(kv string) bool { return strings.HasPrefix(kv, "MCP_BRIDGE_") }
	cmd.Env = append(slices.DeleteFunc(os.Environ(), own), "MCP_BRIDGE_RUNTIME=podman",
		"MCP_BRIDGE_ENV=base", "MCP_BRIDGE_CONFIG="+config, "XDG_STATE_HOME="+dir)
	cmd.Env = append(cmd.Env, env...)
	cmd.Dir = dir
	return cmd, nil
}

// serve starts a bridge that has answered initialize.
func (s *suite) serve(ctx context.Context, servers int, env ...string) (*client, error) {
	cmd, err := s.command(servers, env...)
	if err != nil {
		return nil, err
	}
	return dial(ctx, cmd)
}

// warm starts a bridge whose next call finds a container that waits for it. It ends with the part.
func (s *suite) warm(ctx context.Context, servers int, env ...string) (*client, error) {
	c, err := s.serve(ctx, servers, env...)
	if err != nil {
		return nil, err
	}
	s.clients = append(s.clients, c)
	return c, c.warmUp(ctx)
}

func (c *client) warmUp(ctx context.Context) error {
	for range warmups {
		if _, err := c.one(ctx); err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

// resident puts the resident memory of a program into the report.
func (s *suite) resident(name string, c *client) error {
	mb, err := c.resident()
	if err == nil {
		s.report.put(&figure{name: name, unit: "MB", values: []float64{mb}})
	}
	return err
}

// resident returns the resident memory of a program in MB, by proc_pid_status(5).
func (c *client) resident() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return megabytes(string(text), "VmRSS")
}

// megabytes adds up the lines of a text that begin with a key, and have kilobytes behind it.
func megabytes(text, key string) (mb float64, err error) {
	lines := regexp.MustCompile("(?m)^"+key+`:\s+(\d+) kB$`).FindAllStringSubmatch(text, -1)
	for _, m := range lines {
		kib, _ := strconv.Atoi(m[1]) // digits
		mb += float64(kib) / 1024
	}
	if lines == nil {
		err = fmt.Errorf("no line %s in %.200q", key, text)
	}
	return mb, err
}
