//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

var update = flag.Bool("update", false, "write what the tests compare with")

// podOf returns the pod that a driver of that Config makes, as YAML. What differs from one pod to
// the next has a fixed value.
func podOf(t *testing.T, cfg Config, l runtime.Limits) string {
	t.Helper()
	in := &cluster{d: New(cfg), namespace: testNamespace, ownUsers: true}
	c := &connection{cluster: in, pods: &pods{id: "connection"}}
	owner := runtime.Owner{Instance: "INSTANCE"}
	p := c.pod("mcp-bridge-NAME", runtime.Spec{
		Image: "registry.example/python@sha256:ab", Command: []string{"python3", "-I", "-c", "boot"},
		Env: []string{"PATH=/usr/bin", "HOME=/workspace"}, User: "65534:65534", Owner: owner, Limits: l,
		Tmpfs: []runtime.Tmpfs{{Path: "/ipc", Size: 4 << 20}, {Path: "/tmp", Size: 64 << 20},
			{Path: "/workspace", Size: 256 << 20}},
		MaxAge: 10 * time.Minute, Answers: true, // as a guest
	})
	for k := range owner.Labels() { // what they hold is of this process and machine
		p.Labels[k] = "the owner's"
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(b, &plain); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPodSpec compares the lock-down with testdata/pod.yaml, line by line: one that goes is named.
// With -update it writes the file.
func TestPodSpec(t *testing.T) {
	limits := runtime.Limits{Memory: 512 << 20, PIDs: 128, NoFile: 1024, Shm: 16 << 20, CPUs: 1.5}
	all := map[string]string{
		"testdata/pod.yaml": podOf(t, Config{}, limits),
		"testdata/pod-other.yaml": podOf(t, Config{Hardening: runtime.Hardening{OCIRuntime: "gvisor",
			Seccomp: &runtime.SeccompProfile{Name: "localhost/profiles/own.json"}}},
			runtime.Limits{Memory: 512 << 20, PIDs: 128, NoFile: 1024, Shm: 16 << 20}),
	}
	for file, got := range all {
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("the pod differs from %s (-want +got):\n%s", file, diff)
		}
	}
}

// TestFilter: what the user names is the filter that nodes set, if it is one that they have.
func TestFilter(t *testing.T) {
	f := newFake(t)
	for name, want := range map[string]string{"localhost/own.json": "localhost/own.json", "strict": "engine"} {
		facts, err := f.driver(t, Config{Hardening: runtime.Hardening{
			Seccomp: &runtime.SeccompProfile{Name: name}}}).Facts(t.Context())
		if err != nil || facts.Seccomp != want {
			t.Errorf("%s: the filter is %q, %v; want %q", name, facts.Seccomp, err, want)
		}
	}
}
