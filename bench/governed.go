package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// policy is what a user might write: the tools of one server, but for some, and a limit that no run here comes to.
const policy = `default = "ask"

[[rule]]
tools = ["shop.*"]
except = ["shop.delete_*"]
verdict = "allow"

[[rule]]
tools = ["*.delete_*"]
verdict = "deny"

[[limit]]
tools = ["*.*"]
per = "tool"
calls = 1000
argument_bytes = 65536
`

// governed is a bridge with a policy, and a record of all runs and calls.
type governed struct {
	*client
	audit string // the file of the record
}

// govern is warm for such a bridge.
func (s *suite) govern(ctx context.Context, servers map[string]server) (governed, error) {
	s.files++
	rules := filepath.Join(s.dir, fmt.Sprintf("policy-%d.toml", s.files))
	if err := os.WriteFile(rules, []byte(policy), 0o600); err != nil {
		return governed{}, err
	}
	g := governed{audit: filepath.Join(s.dir, fmt.Sprintf("audit-%d.jsonl", s.files))}
	var err error
	g.client, err = s.warm(ctx, servers, "MCP_BRIDGE_POLICY="+rules, "MCP_BRIDGE_AUDIT="+g.audit)
	return g, err
}

// close ends the bridge, and fails where it hasn't recorded at least so many of a kind, run or call: then it wasn't what was to be measured.
func (g governed) close(kind string, least int) error {
	if err := g.client.close(); err != nil {
		return err
	}
	n, err := recorded(g.audit, kind)
	if err == nil && n < least {
		err = fmt.Errorf("of %d of kind %q the bridge has recorded %d", least, kind, n)
	}
	return err
}

// recorded counts the lines of a kind in a record.
func recorded(path, kind string) (n int, err error) {
	file, err := os.Open(path) //nolint:gosec // a path of ours
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	in := bufio.NewScanner(file)
	for in.Scan() {
		var line struct{ Kind string }
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			return n, fmt.Errorf("%s: %w", path, err)
		}
		if line.Kind == kind {
			n++
		}
	}
	return n, in.Err()
}
