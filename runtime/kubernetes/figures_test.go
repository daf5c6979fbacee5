//go:build kubernetes

package kubernetes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Bounds that the issue sets, at p50.
const (
	warmBound  = 15 * time.Millisecond
	freshBound = 1.2 // times what a bare pod takes
)

// TestClusterFigures measures, in one run: calls that a warm pod answers, beside an exec in such a
// pod; and from the creation of a pod of ours until it runs, beside a bare pod of the same spec.
func TestClusterFigures(t *testing.T) {
	d := realDriver(t)
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fresh, bare := freshPods(t, d, c)
	warmed, execs := warmCalls(t, d, c)
	for _, f := range []struct {
		what string
		took []time.Duration
	}{{"a warm call", warmed}, {"an exec", execs}, {"a pod of ours that runs", fresh},
		{"a bare pod that runs", bare}} {
		t.Logf("%s: p50 %v, p90 %v, %d of them", f.what, p50(f.took), f.took[len(f.took)*9/10], len(f.took))
	}
	if p50(warmed) > warmBound || p50(warmed) > p50(execs) {
		t.Errorf("a warm call takes %v, want at most %v and no more than an exec", p50(warmed), warmBound)
	}
	if p50(fresh) > time.Duration(freshBound*float64(p50(bare))) {
		t.Errorf("a pod of ours takes %v to run, want at most %v times %v", p50(fresh), freshBound, p50(bare))
	}
}

func p50(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2]
}

// freshPods takes the times of pods of both kinds, in turns.
func freshPods(t *testing.T, d *Driver, c *connection) (fresh, bare []time.Duration) {
	t.Helper()
	s := realTarget(d)(t).Spec("import sys; sys.stdin.read()")
	if err := d.leases.hold(t.Context(), c.cluster, s.Owner); err != nil {
		t.Fatal(err)
	}
	start := func(change func(*corev1.Pod)) time.Duration {
		name := s.Owner.NewName()
		p := c.pod(name, s)
		change(p)
		began := time.Now()
		if err := c.startOnce(t.Context(), t.Context(), p, running); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if err := c.Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return took
	}
	for range 15 {
		fresh = append(fresh, start(func(*corev1.Pod) {}))
		bare = append(bare, start(func(p *corev1.Pod) {
			p.Spec.Containers[0].Command, p.Spec.Containers[0].Args = []string{"sleep", "60"}, nil
		}))
	}
	return fresh, bare
}

// warmCalls takes the times of calls that a warm pod answers, each after an exec in that pod.
func warmCalls(t *testing.T, d *Driver, c *connection) (warmed, execs []time.Duration) {
	t.Helper()
	s := warm(t, d, imageRef)
	for n := 0; len(warmed) < 20; n++ {
		if n == 100 {
			t.Fatalf("of 100 calls %d found a warm pod", len(warmed))
		}
		if n > 0 {
			execs = append(execs, execInWarm(t, c))
		}
		r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "print(6 * 7)", Timeout: time.Minute}, nil)
		if err != nil || r.Stdout() != "42\n" {
			t.Fatalf("got %+v, %v", r, err)
		}
		if r.Took.Start < time.Millisecond { // it had no container to wait for
			warmed = append(warmed, r.Took.Total)
		}
	}
	return warmed, execs
}

// execInWarm waits until an exec works in the one pod that there is, and returns how long it takes.
// The pod of the last call may still count as one that runs, though its container has ended: an
// exec fails there. The guest is ready by then: an exec starts a Python, too.
func execInWarm(t *testing.T, c *connection) (took time.Duration) {
	t.Helper()
	eventually(t, "an exec works in one pod", func() bool {
		list, err := c.cli.CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 1 || list.Items[0].DeletionTimestamp != nil ||
			status(&list.Items[0]).State.Running == nil {
			return false
		}
		began := time.Now()
		_, err = execute(t, c, c.namespace, list.Items[0].Name, container, "python3", "-I", "-c", "print(1)")
		took = time.Since(began)
		return err == nil
	})
	return took
}

// execute runs a program in a container as kubectl exec does, and returns what it prints.
func execute(t *testing.T, c *connection, namespace, pod, container string, command ...string,
) (string, error) {
	t.Helper()
	url := c.cli.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).
		SubResource("exec").VersionedParams(&corev1.PodExecOptions{Container: container, Stdout: true,
		Command: command}, scheme.ParameterCodec).URL()
	web, err := remotecommand.NewWebSocketExecutor(c.cfg, "GET", url.String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out strings.Builder
	err = web.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out})
	return out.String(), err
}
