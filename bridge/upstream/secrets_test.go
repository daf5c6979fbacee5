//go:build unix

package upstream

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// given is a fake server that is given the secret s as a variable.
func given(mode string) discovery.Server {
	s := fake(mode)
	s.Env["TOKEN"], s.Env["WHERE"] = "x${secret:s}", "${secret:s}"
	s.Secrets = []discovery.Secret{{Name: "s", In: "env.TOKEN", At: 1}, {Name: "s", In: "env.WHERE"}}
	return s
}

// TestSecretsAreFilledIn: at each start, for the server alone. What is told of it is its
// definition.
func TestSecretsAreFilledIn(t *testing.T) {
	var reads atomic.Int64
	var listed discovery.Server
	p := open(t, func(c *Config) {
		c.Secret = func(name string) (string, error) {
			reads.Add(1)
			return map[string]string{"s": "en_US"}[name], nil // its kind isn't hidden in general
		}
		c.Listed = func(s discovery.Server, _, _ string, _ []Tool) { listed = s }
	}, given("normal"))
	if n := reads.Load(); n != 0 {
		t.Errorf("%d secrets were read before a server was started", n)
	}
	if _, err := p.Tools(t.Context(), "fake"); err != nil {
		t.Fatal(err)
	}
	if defined := given("normal"); listed.Identity() != defined.Identity() ||
		listed.Env["WHERE"] != "${secret:s}" {
		t.Errorf("its tools were kept for %v", listed.Env)
	}
	s := live(p)
	if got := s.server.Env["TOKEN"] + " " + s.server.Env["WHERE"]; got != "xen_US en_US" {
		t.Errorf("it was started with %s", got)
	}
	if got := s.mask.text("a en_US b"); got != "a *** b" {
		t.Errorf("shown is %s", got)
	}

	before := pid(t.Context(), t, p, "fake")
	again := given("normal")
	p.Update([]discovery.Server{again})
	if pid(t.Context(), t, p, "fake") != before {
		t.Error("it was started again, and nothing has changed")
	}
	again = given("normal")
	again.Secrets[0].Set = time.Now()
	p.Update([]discovery.Server{again})
	if pid(t.Context(), t, p, "fake") == before {
		t.Error("it wasn't started again when its secret was set again")
	}
}

// TestSecretsAreNotTold: neither by a server that fails, nor when they can't be read.
func TestSecretsAreNotTold(t *testing.T) {
	p := open(t, func(c *Config) {
		c.Secret = func(string) (string, error) { return "first line\nhunter2 line", nil }
	}, given("dies"))
	_, err := p.Tools(t.Context(), "fake")
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "***") {
		t.Errorf("got %v", err)
	}
	p = open(t, func(c *Config) {
		c.Secret = func(string) (string, error) { return "", errors.New("the keyring is locked; unlock it") }
	}, given("normal"))
	_, err = p.Tools(t.Context(), "fake")
	var failed *ServerError
	if !errors.As(err, &failed) || !strings.HasSuffix(err.Error(),
		"its secret s: the keyring is locked; unlock it") {
		t.Errorf("got %v", err)
	}
	locked := true
	p = open(t, func(c *Config) {
		c.Secret = func(string) (string, error) {
			if locked {
				return "", errors.New("the keyring is locked")
			}
			return "hunter2", nil
		}
	}, given("normal"))
	if _, err = p.Tools(t.Context(), "fake"); err == nil {
		t.Error("it was started without its secret")
	}
	locked = false
	if _, err = p.Tools(t.Context(), "fake"); err != nil {
		t.Errorf("once the keyring is unlocked: %v", err)
	}
	p = open(t, nil, given("normal"))
	if _, err = p.Tools(t.Context(), "fake"); err == nil || !strings.Contains(err.Error(),
		"no secrets can be read") {
		t.Errorf("got %v", err)
	}
}
