//go:build kubernetes

package kubernetes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
	"github.com/mcp-bridge/mcp-bridge/sandbox/sandboxtest"
)

// imageRef is what the tests of a real node run; test/kubernetes/node loads it.
const imageRef = "localhost/mcp-bridge/python:latest"

// realDriver is the cluster of KUBECONFIG. Without MCP_BRIDGE_TEST_RUNTIME=kubernetes these tests
// are skipped; test/kubernetes/node gives them a cluster.
func realDriver(t *testing.T) *Driver {
	t.Helper()
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "kubernetes" {
		t.Skip("MCP_BRIDGE_TEST_RUNTIME is not kubernetes: no cluster to test against")
	}
	d := New(Config{})
	t.Cleanup(func() { d.Close() })
	if _, has, err := d.FindImage(t.Context(), imageRef); err != nil || !has {
		t.Fatalf("image %s: there is %v, %v", imageRef, has, err)
	}
	return d
}

func realTarget(d *Driver) func(*testing.T) runtimetest.Target {
	owner := runtime.Self()
	return func(t *testing.T) runtimetest.Target {
		return runtimetest.Target{Driver: d, Image: imageRef, Owner: owner, Differs: podsDiffer, Count: func() int {
			return countPods(t, d)
		}}
	}
}

// podsDiffer are what pods haven't got, by property and problem, and what there is instead;
// docs/kubernetes.md and doctor say so too.
var podsDiffer = map[string]string{
	"programs can't be run from where they can be written: programs can be run from": "a pod's memory is not " +
		"mounted noexec: what runs has no privileges and no capabilities",
	"writable places: is not mounted no": "" +
		"a pod's memory is not mounted nosuid, nodev and noexec; its sizes hold",
	"namespaces: the cgroup namespace is": "" +
		"with control groups of version 1 a container runtime makes no namespace " +
		"for them",
	"control group namespace: a control group's path is": "" +
		"with control groups of version 1 a container runtime " +
		"makes no namespace for them, so a container sees its path in the machine's",
}

// countPods counts the pods of bridges. Those that wait in a pool of agent-sandbox don't count.
func countPods(t *testing.T, d *Driver) int {
	t.Helper()
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.cli.CoreV1().Pods(c.namespace).List(context.Background(),
		metav1.ListOptions{LabelSelector: labelDriver})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

func TestClusterBehaviour(t *testing.T) {
	runtimetest.Behaviour(t, realTarget(realDriver(t)))
}

func TestClusterLockDown(t *testing.T) {
	runtimetest.LockDown(t, realTarget(realDriver(t)))
}

func TestClusterRollback(t *testing.T) {
	sandboxtest.Rollback(t, realDriver(t), imageRef, 3, nil)
}

// TestClusterSeccomp: pods have the filter of system calls that a file of the node's sets, the
// guest runs behind our own strict one, and a file that isn't there is named with what to do.
func TestClusterSeccomp(t *testing.T) {
	realDriver(t) // or skipped
	strict, err := os.ReadFile("../seccomp/strict.json")
	if err != nil {
		t.Fatal(err)
	}
	const noLinks = `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
		{"names": ["symlink", "symlinkat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 18}]}`
	profiles := filepath.Join(nodeDir(), "kubelet/seccomp/mcp-bridge")
	if err := os.MkdirAll(profiles, 0o755); err != nil { //nolint:gosec // the kubelet's
		t.Fatal(err)
	}
	for name, text := range map[string]string{"no-links.json": noLinks, "strict.json": string(strict)} {
		if err := os.WriteFile(filepath.Join(profiles, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	with := func(name string) *Driver {
		d := New(Config{Hardening: runtime.Hardening{
			Seccomp: &runtime.SeccompProfile{Name: "localhost/mcp-bridge/" + name}}})
		t.Cleanup(func() { d.Close() })
		return d
	}

	d := with("no-links.json")
	var out strings.Builder
	std := silent()
	std.Stdout = &out
	exit, err := d.Run(t.Context(), realTarget(d)(t).Spec("import os\ntry:\n    os.symlink('a', '/tmp/b')\n"+
		"except OSError as e:\n    print(e.errno)"), std)
	if err != nil || exit.Code != 0 || out.String() != "18\n" {
		t.Errorf("behind a filter of the node's: %+v, %v, %q; want 18, its errno", exit, err, out.String())
	}

	r, err := warm(t, with("strict.json"), imageRef).Run(t.Context(),
		sandbox.Request{ID: "r", Code: "print(6 * 7)", Timeout: time.Minute}, nil)
	if err != nil || r.Stdout() != "42\n" {
		t.Errorf("behind the strict filter: %+v, %v", r, err)
	}

	d = with("missing.json")
	_, err = d.Run(t.Context(), realTarget(d)(t).Spec("print(1)"), silent())
	said(t, err, "missing.json", "put the profile that MCP_BRIDGE_SECCOMP names onto each node")
}
