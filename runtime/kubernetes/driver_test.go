//go:build kubernetes

package kubernetes

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// driver returns a driver of the fake, which a kubeconfig names.
func (f *fake) driver(t testing.TB, cfg Config) *Driver {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	cfg.Context = cmp.Or(cfg.Context, "here")
	// The path tells the fake whose a request is: over plain HTTP no token does.
	var clusters, contexts string
	for name := range strings.FieldsSeq("here b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 b10 b11 b12 b13 b14 b15 b16 b17 b18 b19") {
		clusters += fmt.Sprintf("- {name: %s, cluster: {server: %q}}\n", name, f.server.URL+"/as/"+name)
		contexts += fmt.Sprintf("- {name: %s, context: {cluster: %s, user: u, namespace: %s}}\n", name, name,
			testNamespace)
	}
	text := "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: t}}]\nclusters:\n" + clusters +
		"contexts:\n" + contexts
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	d := New(cfg)
	t.Cleanup(func() { d.Close() })
	return d
}

func (f *fake) target(d *Driver) func(*testing.T) runtimetest.Target {
	owner := runtime.Self()
	return func(*testing.T) runtimetest.Target {
		return runtimetest.Target{Driver: d, Image: "registry.example/python:3", Owner: owner, Count: func() int {
			_, pods := f.count("")
			return pods
		}}
	}
}

// TestBehaviour: the driver keeps its contract over real streams, the gate included.
func TestBehaviour(t *testing.T) {
	f := newFake(t)
	runtimetest.Behaviour(t, f.target(f.driver(t, Config{})))
}

// TestRequests: a run costs four requests: its lease's renewal is shared, its life is watched.
func TestRequests(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	g := f.target(d)(t)
	for range 5 {
		if _, err := d.Run(t.Context(), g.Spec("print(1)"), silent()); err != nil {
			t.Fatal(err)
		}
	}
	for request, want := range map[string]int{
		"create pods": 5, "create pods/attach": 5, "delete pods": 5, "get pods": 0, "watch pods": 1,
		"create leases": 1, "update leases": 0,
	} {
		got, _ := f.count(request)
		if request == "watch pods" && got > 0 { // one that a server can't list by, perhaps, and one
			got = 1
		}
		if got != want {
			t.Errorf("%s: %d requests, want %d", request, got, want)
		}
	}
}

func silent() runtime.Stdio {
	return runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &strings.Builder{}, Stderr: &strings.Builder{}}
}
