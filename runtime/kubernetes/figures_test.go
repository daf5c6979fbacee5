//go:build kubernetes

package kubernetes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestClusterFigures measures, in one run: an answer over an attached stream, beside what an exec
// in the same pod takes; and a fresh pod's first output, beside a bare pod of the same spec that
// runs.
func TestClusterFigures(t *testing.T) {
	d := realDriver(t)
	g := realTarget(d)(t)
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var answers, execs, fresh, bare []time.Duration
	for range 5 {
		began := time.Now()
		talk(t, d, g.Spec("import sys\nprint('up', flush=True)\nfor l in sys.stdin: print(l, end='', flush=True)"),
			func(out *bufio.Reader, in io.Writer) {
				fresh = append(fresh, time.Since(began))
				for i := range 20 {
					began := time.Now()
					fmt.Fprintln(in, i)
					if line, err := out.ReadString('\n'); err != nil || line != fmt.Sprintln(i) {
						t.Errorf("got %q, %v", line, err)
					}
					answers = append(answers, time.Since(began))
				}
				c.pods.mu.Lock()
				var name string
				for name = range c.pods.seen {
				}
				c.pods.mu.Unlock()
				for range 4 {
					began := time.Now()
					execute(t, c, name)
					execs = append(execs, time.Since(began))
				}
			})
		s := g.Spec("")
		name := s.Owner.NewName()
		p := c.pod(name, s)
		p.Spec.HostUsers = nil // which the driver has found out
		p.Spec.Containers[0].Command, p.Spec.Containers[0].Args = []string{"sleep", "60"}, nil
		began = time.Now()
		if err := c.startOnce(t.Context(), t.Context(), p, running); err != nil {
			t.Fatal(err)
		}
		bare = append(bare, time.Since(began))
		if err := c.Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []struct {
		what string
		took []time.Duration
	}{{"an answer over the stream", answers}, {"an exec", execs}, {"a fresh pod's first output", fresh},
		{"a bare pod that runs", bare}} {
		slices.Sort(f.took)
		t.Logf("%s: p50 %v, p90 %v, %d of them", f.what, f.took[len(f.took)/2], f.took[len(f.took)*9/10],
			len(f.took))
	}
	if answers[len(answers)/2] > execs[len(execs)/2] {
		t.Error("an answer over the stream takes longer than an exec")
	}
}

// talk runs a program, calls f once it has printed a line, and ends its input.
func talk(t *testing.T, d *Driver, s runtime.Spec, f func(out *bufio.Reader, in io.Writer)) {
	t.Helper()
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer in.Close()
		read := bufio.NewReader(out)
		if _, err := read.ReadString('\n'); err != nil {
			t.Errorf("it said nothing: %v", err)
			return
		}
		f(read, in)
	}()
	_, err := d.Run(t.Context(), s, runtime.Stdio{Stdin: stdin, Stdout: stdout, Stderr: io.Discard})
	stdout.Close()
	if <-done; err != nil {
		t.Fatal(err)
	}
}

// execute runs a program in a pod, as kubectl exec does.
func execute(t *testing.T, c *connection, pod string) {
	t.Helper()
	url := c.cli.CoreV1().RESTClient().Post().Resource("pods").Namespace(c.namespace).Name(pod).
		SubResource("exec").VersionedParams(&corev1.PodExecOptions{Container: container, Stdout: true,
		Command: []string{"python3", "-I", "-c", "print(1)"}}, scheme.ParameterCodec).URL()
	web, err := remotecommand.NewWebSocketExecutor(c.cfg, "GET", url.String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := web.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard}); err != nil {
		t.Error(err)
	}
}
