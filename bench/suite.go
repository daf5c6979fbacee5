package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// suite is what the parts share.
type suite struct {
	bridge string // the program to measure
	dir    string // of our own, for sockets and settings
	scale  scale
	report *Report
	errs   io.Writer // for who waits

	used           *used         // nil but between the parts h and i
	spent, planned time.Duration // of the parts that were run

	docker    dockerFound
	engine    *engine   // nil until readyEngine
	container container // what the bridge asks podman for; nil until readyEngine
	options   entrypoint.Options
	source    []byte // that the bridge sends a guest, with the code that was compiled for the image
	files     int
}

// scale is how often each thing is done.
type scale struct {
	starts, first, warm, governed, bare, busy, bursts, cold, podman, docker int
	roundTrips, gathers, outputs, flat                                      int
	load                                                                    time.Duration
	calls                                                                   int
	items, growth                                                           int
	block                                                                   int           // warm calls in a row, before their baseline has its turn
	warming                                                                 int           // calls that nobody times, before the first
	clients                                                                 int           // of a burst
	callers                                                                 []int         // of the steps of load
	tools                                                                   []int         // configured, in the steps of growth
	rest                                                                    time.Duration // of a bridge, before its memory is looked at
}

const (
	pause   = 300 * time.Millisecond // between warm calls
	perTurn = 200                    // tool calls in a row, before their baseline has its turn
)

func scaleOf(o options) scale {
	if o.quick {
		return scale{starts: 3, first: 1, warm: 2, governed: 2, bare: 2, busy: 2, bursts: 1, cold: 2, podman: 2, docker: 2, roundTrips: 1, gathers: 2, outputs: 1, flat: 4,
			load: 300 * time.Millisecond, calls: 10, items: 1, growth: 1, block: 2, warming: 1,
			clients: 2, callers: []int{1, 2}, tools: []int{0, 20}, rest: pause}
	}
	of := func(rounds int) int { return max(int(math.Ceil(o.share*float64(rounds))), 2) }
	return scale{starts: of(200), first: of(10), warm: of(200), governed: of(100), bare: of(200), busy: of(40), bursts: of(10),
		cold: of(200), podman: of(100), docker: of(200),
		roundTrips: of(10), gathers: of(20), outputs: of(12), flat: max(of(100), 40), load: o.load, calls: o.calls, items: of(16), growth: of(200), block: 10, warming: 3,
		clients: 8, callers: []int{1, 2, 4, 8}, tools: []int{0, 10, 100, 300}, rest: 2 * time.Second}
}

// noServers is for calls that use none of the user's.
var noServers = map[string]any{"servers": []string{}}

// only names the servers of a call.
func only(names ...string) map[string]any { return map[string]any{"servers": names, "timeout": 60} }

// server is an entry of a configuration file.
type server struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// shop is the demo server that the bridge has in it.
func (s *suite) shop() server { return server{Command: s.bridge, Args: []string{"demo-server"}} }

// shops are as many of it as part i has.
func (s *suite) shops() map[string]server {
	all := map[string]server{}
	for i := range upstreams {
		all[fmt.Sprintf("shop%02d", i)] = s.shop()
	}
	return all
}

// found is the variable that has a bridge find its engine. An empty one means the default.
const found = "MCP_BRIDGE_RUNTIME="

// command is the bridge with these servers and variables beside the user's own.
func (s *suite) command(servers map[string]server, env ...string) (*exec.Cmd, error) {
	if servers == nil {
		servers = map[string]server{}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return nil, err
	}
	s.files++
	path := filepath.Join(s.dir, fmt.Sprintf("servers-%d.json", s.files))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(s.bridge) //nolint:gosec // the program to be measured
	// What the user has set for their own bridge is not what is measured.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "MCP_BRIDGE_") })
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_RUNTIME=podman", "MCP_BRIDGE_CONFIG="+path, "XDG_STATE_HOME="+path+".state")
	cmd.Env = append(cmd.Env, env...)
	cmd.Dir = s.dir
	return cmd, nil
}

// configured is how many servers a bridge finds in the files of the user's hosts.
func (s *suite) configured(ctx context.Context) (int, error) {
	cmd, err := s.command(nil)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	listing := exec.CommandContext(ctx, s.bridge, "servers", "--json") //nolint:gosec // the program to be measured
	listing.Env, listing.Dir = cmd.Env, cmd.Dir
	said := &tail{limit: 2 << 10}
	listing.Stderr = said
	text, err := listing.Output()
	if err != nil {
		return 0, fmt.Errorf("%s servers: %w; %s", s.bridge, err, said)
	}
	var list struct{ Servers []json.RawMessage }
	if err := json.Unmarshal(text, &list); err != nil {
		return 0, fmt.Errorf("%s servers: %w", s.bridge, err)
	}
	return len(list.Servers), nil
}

// serve starts a bridge that has answered initialize.
func (s *suite) serve(ctx context.Context, servers map[string]server, env ...string) (*client, error) {
	cmd, err := s.command(servers, env...)
	if err != nil {
		return nil, err
	}
	return greet(ctx, cmd)
}

// host is a server without a bridge before it: the bare client's.
func (s *suite) host(ctx context.Context) (*client, error) {
	return greet(ctx, exec.Command(s.bridge, s.shop().Args...)) //nolint:gosec // the program to be measured
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

// warm is a bridge whose next call finds a container that waits for it.
func (s *suite) warm(ctx context.Context, servers map[string]server, env ...string) (*client, error) {
	c, err := s.serve(ctx, servers, env...)
	if err != nil {
		return nil, err
	}
	for range s.scale.warming {
		if _, _, err := c.python(ctx, "print(1)", "1\n", noServers); err != nil {
			return nil, errors.Join(err, c.close())
		}
		sleep(ctx, pause)
	}
	return c, nil
}

// readyEngine starts podman for the baselines and looks what the bridge asks it for.
func (s *suite) readyEngine(ctx context.Context) (err error) {
	if s.engine == nil {
		if s.engine, err = startEngine(ctx, s.dir); err != nil {
			return err
		}
	}
	if s.container != nil {
		return nil
	}
	c, o, err := s.record(ctx)
	if err != nil {
		return err
	}
	source, err := s.engine.compile(ctx, c)
	if err == nil {
		s.container, s.options, s.source = c, o, source
	}
	return err
}

func (s *suite) close() error { return errors.Join(s.release(), s.stopEngine()) }

// stopEngine ends the service that readyEngine has started, and will start again.
func (s *suite) stopEngine() error {
	if s.engine == nil {
		return nil
	}
	e := s.engine
	s.engine = nil
	return e.close()
}

// sleep is the pause of a user; it says whether all of it passed.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
