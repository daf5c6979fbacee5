//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// ofSandboxes is what agent-sandbox has of a bridge: what the bridge makes, and what comes of that.
var ofSandboxes = []schema.GroupVersionResource{
	agents.WithResource("sandboxclaims"), agents.WithResource("sandboxwarmpools"),
	agents.WithResource("sandboxtemplates"),
	{Group: "agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxes"},
	{Version: "v1", Resource: "pods"},
	{Group: networkingv1.GroupName, Version: "v1", Resource: "networkpolicies"},
}

// claiming is an administrator's view of a cluster with agent-sandbox, and an account that has no
// rights but those of the manifests.
type claiming struct {
	t     *testing.T
	admin *connection
	api   dynamic.Interface
}

// withClaims skips where the cluster of the tests has no agent-sandbox.
func withClaims(t *testing.T) *claiming {
	t.Helper()
	if os.Getenv("MCP_BRIDGE_AGENT_SANDBOX") == "" {
		t.Skip("not tried: agent-sandbox; MCP_BRIDGE_AGENT_SANDBOX names no checkout of it")
	}
	admin, err := realDriver(t).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if admin.claims == nil {
		t.Fatal("agent-sandbox isn't found in the cluster")
	}
	roles := []*rbacv1.Role{find[*rbacv1.Role](t)}
	for _, o := range objects(t, manifests+"/agent-sandbox", nil) {
		if r, ok := o.(*rbacv1.Role); ok {
			roles = append(roles, r)
		}
	}
	rbac := admin.cli.RbacV1()
	for _, role := range roles {
		role.Namespace, role.Name = admin.namespace, "claims-"+role.Name
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "least"}}}
		_, err := rbac.Roles(admin.namespace).Create(t.Context(), role, metav1.CreateOptions{})
		if err == nil {
			_, err = rbac.RoleBindings(admin.namespace).Create(t.Context(), binding, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx := context.WithoutCancel(t.Context())
			if err := errors.Join(rbac.RoleBindings(admin.namespace).Delete(ctx, role.Name, metav1.DeleteOptions{}),
				rbac.Roles(admin.namespace).Delete(ctx, role.Name, metav1.DeleteOptions{})); err != nil {
				t.Error(err)
			}
		})
	}
	return &claiming{t: t, admin: admin, api: dynamic.NewForConfigOrDie(admin.cfg)}
}

// least returns a driver of the account, connected, and with the image looked for: that pod finds
// out whether the nodes give user namespaces.
func (k *claiming) least(renew, lease time.Duration) (*Driver, *connection) {
	k.t.Helper()
	d := as(k.t, "least")
	d.times.renew, d.times.lease = renew, lease
	if _, has, err := d.FindImage(k.t.Context(), imageRef); err != nil || !has {
		k.t.Fatalf("image %s: there is %v, %v", imageRef, has, err)
	}
	c, err := d.Connect(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	if c.claims == nil {
		k.t.Fatal("with the rights of the manifests nothing is claimed")
	}
	return d, c
}

func (k *claiming) list(what schema.GroupVersionResource) []unstructured.Unstructured {
	k.t.Helper()
	l, err := k.api.Resource(what).Namespace(k.admin.namespace).List(k.t.Context(), metav1.ListOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return l.Items
}

// left names all that there is of agent-sandbox's for which of is true.
func (k *claiming) left(of func(unstructured.Unstructured) bool) (names []string) {
	for _, what := range ofSandboxes {
		for _, o := range k.list(what) {
			if of(o) {
				names = append(names, what.Resource+"/"+o.GetName())
			}
		}
	}
	return names
}

// full blocks until every pool has as many sandboxes that are ready as it wants.
func (k *claiming) full() {
	k.t.Helper()
	eventually(k.t, "the pools are full", func() bool {
		pools := k.list(agents.WithResource("sandboxwarmpools"))
		return len(pools) > 0 && !slices.ContainsFunc(pools, func(o unstructured.Unstructured) bool {
			ready, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
			return ready != poolSize
		})
	})
}

// TestClusterClaims: with agent-sandbox's own controller and the rights of the manifests a start is
// a claim of a pod that waits; the pod is the bridge's, nothing may reach it, its life is bounded,
// and what a dead bridge had is removed.
func TestClusterClaims(t *testing.T) {
	k := withClaims(t)
	d, c := k.least(time.Second, 20*time.Second)
	s := realTarget(d)(t).Spec(waitsForALine)
	began := time.Now()
	first := begin(t, d, s)
	t.Logf("the first claim, before its pool has a pod: %v", time.Since(began).Round(time.Millisecond))
	k.full()
	waiting := map[string]bool{}
	for _, p := range k.list(ofSandboxes[4]) {
		waiting[p.GetName()] = p.GetLabels()[labelDriver] == ""
	}
	second := begin(t, d, s)
	k.isOurs(s, waiting)
	for _, r := range []*underWay{first, second} {
		if _, err := r.in.Write([]byte("go on\n")); err != nil {
			t.Fatal(err)
		}
		if <-r.done; r.err != nil || r.exit.Code != 7 {
			t.Errorf("a claimed pod ended with %+v, %v; want code 7", r.exit, r.err)
		}
	}
	eventually(t, "no claim is left", func() bool { return len(k.list(ofSandboxes[0])) == 0 })

	brief := s
	brief.MaxAge = 5*time.Second - startSlack
	p := c.pod(s.Owner.NewName(), brief)
	id := p.Name
	if _, err := c.claims.claim(t.Context(), c.pods, p, brief); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a claim's pod is gone after its time", func() bool {
		_, gone, _ := c.pods.last(id)
		return gone && len(k.list(ofSandboxes[0])) == 0
	})
	c.pods.forget(id)

	k.dies(s)
	d.Close()
	eventually(t, "nothing is left", func() bool {
		return len(k.left(func(unstructured.Unstructured) bool { return true })) == 0
	})
}

// isOurs checks the pods that are claimed, the last of which waited before.
func (k *claiming) isOurs(s runtime.Spec, waiting map[string]bool) {
	k.t.Helper()
	var taken int
	pods, err := k.admin.cli.CoreV1().Pods(k.admin.namespace).List(k.t.Context(), metav1.ListOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	policies, err := k.admin.cli.NetworkingV1().NetworkPolicies(k.admin.namespace).List(k.t.Context(),
		metav1.ListOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	for _, p := range pods.Items {
		owner, owned := runtime.OwnerOf(labelsOf(&p))
		if owned && waiting[p.Name] {
			taken++
		}
		if owned && owner != s.Owner {
			k.t.Errorf("pod %s is of %+v, want %+v", p.Name, owner, s.Owner)
		}
		if p.Spec.ActiveDeadlineSeconds != nil || p.Labels[labelApp] != app {
			k.t.Errorf("pod %s has the deadline %v and the labels %v", p.Name, p.Spec.ActiveDeadlineSeconds, p.Labels)
		}
		if !slices.ContainsFunc(policies.Items, func(n networkingv1.NetworkPolicy) bool {
			selector, err := metav1.LabelSelectorAsSelector(&n.Spec.PodSelector)
			return err == nil && selector.Matches(labels.Set(p.Labels)) && len(n.Spec.PolicyTypes) == 2 &&
				len(n.Spec.Ingress)+len(n.Spec.Egress) == 0
		}) {
			k.t.Errorf("no policy denies all to pod %s, with the labels %v", p.Name, p.Labels)
		}
	}
	if taken != 1 {
		k.t.Errorf("%d of the pods that waited are claimed, want 1", taken)
	}
}

// dies has a bridge stop renewing its lease with a run under way, and waits until another one has
// removed all that it had.
func (k *claiming) dies(s runtime.Spec) {
	k.t.Helper()
	dead, _ := k.least(time.Hour, time.Hour)
	s.Owner.Instance += "x"
	r := begin(k.t, dead, s)
	its := func(o unstructured.Unstructured) bool {
		return strings.HasPrefix(o.GetName(), leaseName(s.Owner.Instance)+"-") ||
			o.GetLabels()[claimable+runtime.LabelInstance] == s.Owner.Instance ||
			o.GetLabels()[runtime.LabelInstance] == s.Owner.Instance
	}
	if len(k.left(its)) < len(ofSandboxes) {
		k.t.Errorf("a bridge has only %v", k.left(its))
	}
	eventually(k.t, "nothing of the dead bridge is left", func() bool { return len(k.left(its)) == 0 })
	r.in.Close()
	<-r.done
}

// cordon sets whether the nodes are given new pods.
func (k *claiming) cordon(on bool) {
	k.t.Helper()
	nodes := k.admin.cli.CoreV1().Nodes()
	all, err := nodes.List(k.t.Context(), metav1.ListOptions{})
	for i := 0; err == nil && i < len(all.Items); i++ {
		_, err = nodes.Patch(k.t.Context(), all.Items[i].Name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec": {"unschedulable": %v}}`, on), metav1.PatchOptions{})
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// TestClusterClaimFigures measures, in turns: from a claim of a pod that waits to the pod, to the
// stream to it, and to the first of its output, while the node makes the next pod of the pool
// and while it doesn't; the same of a pod that is made; and a call that a warm pod of our own
// answers.
func TestClusterClaimFigures(t *testing.T) {
	k := withClaims(t)
	d, c := k.least(10*time.Second, 40*time.Second)
	s := realTarget(d)(t).Spec("import sys\nread = sys.stdin.readline\n" +
		"if read() == '\\n': print(flush=True); read()\nprint(6 * 7, flush=True)")
	s.Answers = true                                           // as a guest
	if _, err := d.Run(t.Context(), s, silent()); err != nil { // which makes the pool
		t.Fatal(err)
	}
	own := warm(t, d, imageRef)
	var claimed, alone, made [3][]time.Duration
	var warmed []time.Duration
	const each = 30
	for n := 0; len(claimed[0]) < each || len(warmed) < each; n++ {
		if n == 3*each {
			t.Fatalf("of %d calls only %d found a warm pod", n, len(warmed))
		}
		r, err := own.Run(t.Context(), sandbox.Request{ID: "r", Code: "print(6 * 7)", Timeout: time.Minute}, nil)
		if err != nil || r.Stdout() != "42\n" {
			t.Fatalf("got %+v, %v", r, err)
		}
		if r.Took.Start < time.Millisecond { // it had no container to wait for
			warmed = append(warmed, r.Took.Total)
		}
		k.full()
		steps(t, c, s, &claimed)
		k.full()
		k.cordon(true)
		steps(t, c, s, &alone)
		k.cordon(false)
		c.claims.mu.Lock()
		c.claims.failed = true // pods are made
		c.claims.mu.Unlock()
		steps(t, c, s, &made)
		c.claims.mu.Lock()
		c.claims.failed = false
		c.claims.mu.Unlock()
	}
	for _, f := range []struct {
		what string
		took []time.Duration
	}{
		{"a claim, to its pod", claimed[0]}, {"to its stream", claimed[1]},
		{"to its output", claimed[2]}, {"a claim while no pod is made, to its pod", alone[0]},
		{"to its stream", alone[1]}, {"to its output", alone[2]},
		{"a pod that is made, to the pod", made[0]}, {"to its stream", made[1]},
		{"to its output", made[2]}, {"a call in a warm pod of ours", warmed},
	} {
		t.Logf("%s: p50 %v, p95 %v, %d of them", f.what, p50(f.took).Round(time.Millisecond/10),
			f.took[len(f.took)*95/100].Round(time.Millisecond/10), len(f.took))
	}
	if p50(claimed[0]) > p50(made[0])/2 {
		t.Errorf("a claim takes %v to its pod, want half of the %v of one that is made", p50(claimed[0]),
			p50(made[0]))
	}
}

// steps starts a pod as engine.Engine does, and adds the times until it is there, until it is
// connected to, and until its program answers.
func steps(t *testing.T, c *connection, s runtime.Spec, took *[3][]time.Duration) {
	t.Helper()
	name := s.Owner.NewName()
	began := time.Now()
	id, err := c.Create(t.Context(), name, s)
	if err != nil {
		t.Fatal(err)
	}
	var at [3]time.Duration
	at[0] = time.Since(began)
	stream, err := c.Attach(t.Context(), id)
	if err == nil {
		err = c.Start(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	at[1] = time.Since(began)
	if _, err := stream.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len("........42\n"))
	if _, err := io.ReadFull(stream, said); err != nil || string(said[8:]) != "42\n" {
		t.Fatalf("got %q, %v", said, err)
	}
	at[2] = time.Since(began)
	for i := range at {
		took[i] = append(took[i], at[i])
	}
	stream.Close()
	if err := c.Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}
