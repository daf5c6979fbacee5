//go:build kubernetes

package kubernetes

import (
	"context"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
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

func countPods(t *testing.T, d *Driver) int {
	t.Helper()
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.cli.CoreV1().Pods(c.namespace).List(context.Background(), metav1.ListOptions{})
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
