//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// said checks that an error says something, and names a next step.
func said(t *testing.T, err error, says, next string) {
	t.Helper()
	var hinted interface{ Hint() string }
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Fatalf("got %v, want %q", err, says)
	}
	if !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), next) {
		t.Errorf("%v: it names no next step with %q", err, next)
	}
}

// TestRefusals: what the API server refuses is a sentence, each with a next step.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name       string
		status     metav1.Status
		says, next string
	}{
		{"too many", metav1.Status{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests},
			"too much to do", "run the call again"},
		{"quota",
			*forbidden(`pods "x" is forbidden: exceeded quota: small, requested: memory=1Gi, used: memory=1Gi`),
			"the quota of namespace code is used up", "kubectl describe quota"},
		{"verb", *forbidden(`pods is forbidden: User "b" cannot create resource "pods" in API group ""`),
			"may not create pods in namespace code", "kubectl apply -k"},
		{"standard", *forbidden(`pods "x" is forbidden: violates PodSecurity "restricted:latest"`),
			"refuses such pods", "restricted"},
		{"class", *forbidden(`pod rejected: RuntimeClass "gvisor" not found`), "no such RuntimeClass",
			"runtimeclass"},
		{"namespace", metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
			Message: `namespaces "code" not found`}, "there is no namespace code", "kubectl create namespace"},
		{"token", metav1.Status{Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized},
			"doesn't know this account", "log in again"},
		{"overload", metav1.Status{Code: http.StatusServiceUnavailable,
			Reason: metav1.StatusReasonServiceUnavailable},
			"can't answer now", "kubectl cluster-info"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			f.refuse = func(verb, resource string) *metav1.Status {
				if verb != "create" || resource != "pods" {
					return nil
				}
				s := tt.status
				return &s
			}
			d := f.driver(t, Config{})
			_, err := d.Run(t.Context(), f.target(d)(t).Spec("print(1)"), silent())
			said(t, err, tt.says, tt.next)
			if _, pods := f.count(""); pods != 0 {
				t.Errorf("%d pods are left", pods)
			}
		})
	}
}

// TestMissingRights: a right that an account lacks is named before anything is tried.
func TestMissingRights(t *testing.T) {
	f := newFake(t)
	f.denied["create pods/attach"], f.denied["delete leases"] = true, true
	_, err := f.driver(t, Config{}).Facts(t.Context())
	said(t, err, "may not do in namespace code: create pods/attach, delete leases", "kubectl apply -k")
}

// TestRuntimeClass: one that a cluster hasn't got is refused, and one with a kernel of its own
// known.
func TestRuntimeClass(t *testing.T) {
	f := newFake(t)
	f.classes["sandboxed"] = "runsc"
	_, err := f.driver(t, Config{Hardening: runtime.Hardening{OCIRuntime: "kata"}}).Facts(t.Context())
	said(t, err, `no RuntimeClass "kata"`, "kubectl get runtimeclass")
	facts, err := f.driver(t, Config{Hardening: runtime.Hardening{OCIRuntime: "sandboxed"}}).Facts(t.Context())
	if err != nil || !facts.OwnKernel {
		t.Errorf("got %+v, %v; want a kernel of its own", facts, err)
	}
}

// TestNoCluster: without a kubeconfig outside of a cluster, and with a context that isn't in it,
// the next step is said.
func TestNoCluster(t *testing.T) {
	f := newFake(t)
	_, err := f.driver(t, Config{Context: "elsewhere"}).Facts(t.Context())
	said(t, err, `context "elsewhere" does not exist`, "kubectl config get-contexts")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	d := New(Config{})
	defer d.Close() //nolint:errcheck // it has none to give
	_, err = d.Facts(t.Context())
	said(t, err, "its kubeconfig can't be used", "MCP_BRIDGE_RUNTIME=kubernetes:CONTEXT")
}

// TestOldServer: one whose streams don't know the end of input is refused.
func TestOldServer(t *testing.T) {
	f := newFake(t)
	f.minor = "27"
	_, err := f.driver(t, Config{}).Facts(t.Context())
	said(t, err, "it is Kubernetes v1.27.0, and 1.30 or later is needed", "update")
}

func failedWith(reason, message string) *corev1.PodStatus {
	return &corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message}
}

// TestPodsThatNeverRun: why a pod never ran is a sentence.
func TestPodsThatNeverRun(t *testing.T) {
	waiting := func(reason, message string) *corev1.PodStatus {
		return &corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
	}
	unscheduled := &corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
		Message: "0/3 nodes are available: 3 Insufficient memory."}}}
	for _, tt := range []struct {
		name       string
		status     *corev1.PodStatus
		says, next string
	}{
		{"evicted", failedWith("Evicted", "The node was low on resource: memory."), "evicted the pod",
			"MCP_BRIDGE_MEMORY"},
		{"evicted for its own log", failedWith("Evicted", ""+
			"Pod ephemeral local storage usage exceeds the total limit of "+
			"containers 128Mi."), "the pod used more of its node's disk", "print less"},
		{"evicted for what it printed", failedWith("Evicted",
			`Container code exceeded its local ephemeral storage limit "128Mi".`), "the pod used more", "print less"},
		{"evicted for its own files", failedWith("Evicted",
			`Usage of EmptyDir volume "memory-1" exceeds the limit "8Mi".`), "the pod used more", "less in files"},
		{"no such filter", waiting("CreateContainerError", ``+
			`failed to generate seccomp spec opts: cannot load seccomp `+
			`profile "/var/lib/kubelet/seccomp/own.json"`), "could not start the container", "MCP_BRIDGE_SECCOMP"},
		{"preempted", failedWith("Preempting", "Preempted in order to admit critical pod"),
			"higher priority", "again"},
		{"node lost", failedWith("NodeLost", ""), "its node was lost", "another node"},
		{"backoff", waiting("ImagePullBackOff", "Back-off pulling image: 401 Unauthorized"),
			"the registry wants a login", "log in"},
		{"no shell", waiting("RunContainerError", `exec: "sh": executable file not found in $PATH`),
			"could not start the container", "has sh, env and python3"},
		{"unschedulable", unscheduled, "no node took the pod within 1s: 0/3 nodes", "add a node"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			f.begin = func(*corev1.Pod) *corev1.PodStatus { return tt.status }
			d := f.driver(t, Config{})
			d.times.start, d.times.users = time.Second, time.Second/4
			_, err := d.Run(t.Context(), f.target(d)(t).Spec("print(1)"), silent())
			said(t, err, tt.says, tt.next)
			if _, pods := f.count(""); pods != 0 {
				t.Errorf("%d pods are left", pods)
			}
		})
	}
}

// TestEvictedWhileItRan: a run that the cluster ended is no exit of the code.
func TestEvictedWhileItRan(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	up := make(chan struct{}, 1)
	std := silent()
	std.Stdin = blocked(t)
	std.Stdout = writer(func([]byte) { up <- struct{}{} })
	go func() {
		<-up
		f.mu.Lock()
		var name string
		for name = range f.pods {
		}
		g := f.guests[name]
		f.mu.Unlock()
		f.change(name, func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = "Evicted", "low on memory" })
		g.kill()
	}()
	_, err := d.Run(t.Context(), f.target(d)(t).Spec("import time; print('up', flush=True); "+
		"time.sleep(300)"), std)
	said(t, err, "evicted the pod: low on memory", "run the call again")
}

// TestUserNamespaces: where nodes make no pod with a user namespace, pods are made without one, and
// it is said.
func TestUserNamespaces(t *testing.T) {
	f := newFake(t)
	f.begin = func(p *corev1.Pod) *corev1.PodStatus {
		if p.Spec.HostUsers != nil {
			return &corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
				Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}}}
		}
		return nil
	}
	d := f.driver(t, Config{})
	d.times.users = time.Second / 4
	if facts, err := d.Facts(t.Context()); err != nil || facts.OwnUsers {
		t.Errorf("got %+v, %v; no pod has had a user namespace yet", facts, err)
	}
	for range 2 {
		if _, err := d.Run(t.Context(), f.target(d)(t).Spec("print(1)"), silent()); err != nil {
			t.Fatal(err)
		}
	}
	facts, err := d.Facts(t.Context())
	if err != nil || facts.OwnUsers || !strings.Contains(strings.Join(facts.Lacks, "\n"), "user namespace") {
		t.Errorf("got %+v, %v; want no user namespaces, and said", facts, err)
	}
	if created, _ := f.count("create pods"); created != 3 {
		t.Errorf("%d pods were made, want 3: one with a user namespace", created)
	}
}

// TestLeases: a bridge whose lease is renewed keeps its pods; once it is over, another bridge
// removes them, and nothing of anybody else's.
func TestLeases(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	d.times.renew, d.times.lease = 200*time.Millisecond, 2*time.Second
	if _, err := d.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.lease("living")
	f.lease("dead")
	f.pod("living-pod", "living")
	f.pod("dead-pod", "dead")
	f.mu.Lock()
	f.pods["foreign"] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for gone := false; !gone; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the dead bridge's pod is still there")
		}
		f.lease("living") // renewed
		f.mu.Lock()
		gone = f.pods["dead-pod"] == nil && f.leases[leaseName("dead")] == nil
		f.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods["living-pod"] == nil || f.pods["foreign"] == nil || f.leases[leaseName("living")] == nil {
		t.Errorf("pods %v, leases %v: what isn't a dead bridge's was removed", len(f.pods), len(f.leases))
	}
}

// pod adds a pod of a bridge.
func (f *fake) pod(name, instance string) {
	labels := runtime.Owner{Instance: instance}.Labels()
	labels[labelApp] = app
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "x"}}}}
	f.stamp(&f.pods[name].ObjectMeta)
}

// lease adds the lease of a bridge, or renews it.
func (f *fake) lease(instance string) {
	now := metav1.NewMicroTime(time.Now())
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName(instance),
		Labels: map[string]string{labelApp: app, runtime.LabelInstance: instance}},
		Spec: coordinationv1.LeaseSpec{RenewTime: &now}}
	f.stamp(&l.ObjectMeta)
	f.leases[l.Name] = l
}

// TestManyDead: 200 pods of 20 bridges that died together are removed by one, each asked for once
// or twice.
func TestManyDead(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	d.times.renew, d.times.lease = time.Second, 2*time.Second
	for i := range 20 {
		instance := fmt.Sprintf("DEAD%d", i)
		f.lease(instance)
		for j := range 10 {
			f.pod(fmt.Sprintf("pod-%d-%d", i, j), instance)
		}
	}
	if _, err := d.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for left := 200; left > 0; _, left = f.count("") {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d pods of dead bridges are left", left)
		}
	}
	if deletes, _ := f.count("delete pods"); deletes > 400 {
		t.Errorf("%d requests to delete 200 pods", deletes)
	}
}

// TestOwnLease: a bridge takes a lease with its first pod, and leaves none.
func TestOwnLease(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	g := f.target(d)(t)
	if _, err := d.Run(t.Context(), g.Spec("print(1)"), silent()); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	l := f.leases[leaseName(g.Owner.Instance)]
	f.mu.Unlock()
	if l == nil || *l.Spec.LeaseDurationSeconds != 40 {
		t.Errorf("the lease is %+v, want one of 40 s", l)
	}
	d.Close()
	if len(f.leases) != 0 {
		t.Errorf("%d leases are left", len(f.leases))
	}
}

// TestImages: a pod finds out about an image, once.
func TestImages(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	if _, has, err := d.FindImage(t.Context(), "registry.example/python:3"); has || err != nil {
		t.Errorf("an image that no node has: %v, %v", has, err)
	}
	i, err := d.PullImage(t.Context(), "registry.example/python:3", nil)
	if err != nil || !strings.HasPrefix(i.Digest, "sha256:ab") || !strings.Contains(i.ID, "@sha256:ab") {
		t.Errorf("got %+v, %v; want its digest", i, err)
	}
	before, _ := f.count("create pods")
	if _, has, err := d.FindImage(t.Context(), "registry.example/python:3"); !has || err != nil {
		t.Errorf("an image that was pulled: %v, %v", has, err)
	}
	if after, pods := f.count("create pods"); after != before || pods != 0 {
		t.Errorf("%d pods were made to find an image that is known, and %d are left", after-before, pods)
	}
	_, err = d.PullImage(t.Context(), "missing.invalid/none:none", nil)
	said(t, err, "its registry can't be reached", "network")
	_, err = d.AddLayer(t.Context(), runtime.Layer{Base: "x", Ref: "y", Owner: runtime.Self()})
	said(t, err, "a cluster's API has no images", "MCP_BRIDGE_IMAGE")
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func blocked(t *testing.T) *pipe {
	p := &pipe{end: make(chan struct{})}
	t.Cleanup(func() { close(p.end) })
	return p
}

// pipe is a reader that gives nothing until the test is over.
type pipe struct{ end chan struct{} }

func (p *pipe) Read([]byte) (int, error) { <-p.end; return 0, errors.New("over") }
