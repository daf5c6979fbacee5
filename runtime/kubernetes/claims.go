//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Where a cluster has agent-sandbox (kubernetes-sigs/agent-sandbox), its controller keeps pools of
// pods, and a start is a claim of one of them. A pod of a pool waits for a line and is no run's: a
// claim is what gives it the labels of its owner. The pod is found by them, in the watch of pods.

// agents is the version of agent-sandbox's API that is used.
var agents = schema.GroupVersion{Group: "extensions.agents.x-k8s.io", Version: "v1beta1"}

// claimable begins the labels that a claim may give a pod: agent-sandbox takes none of a domain
// that its administrator hasn't listed, and lists this one by itself.
const claimable = "sandbox.users.io/"

// labelClaim is the claim that a pod was taken by.
const labelClaim = claimable + "io.mcp-bridge.claim"

const (
	poolSize = 2 // pods that wait in a pool; those that wait for a bridge's calls are taken already
	maxPools = 4 // of a bridge: one for each image, limits and command of the last starts
)

// claimRights are those in the namespace that claims need. rights.yaml of
// packaging/kubernetes/agent-sandbox grants watchClaims too, without which a start takes longer.
var claimRights = func() (all []authorizationv1.ResourceAttributes) {
	for resource, verbs := range map[string]string{"sandboxclaims": "create get delete deletecollection",
		"sandboxwarmpools": "create list delete deletecollection",
		"sandboxtemplates": "create delete deletecollection"} {
		for verb := range strings.FieldsSeq(verbs) {
			all = append(all, authorizationv1.ResourceAttributes{Group: agents.Group, Verb: verb, Resource: resource})
		}
	}
	return all
}()

var watchClaims = authorizationv1.ResourceAttributes{Group: agents.Group, Verb: "watch",
	Resource: "sandboxclaims"}

// claims are the pools of a connection and what was taken from them. A nil *claims is a cluster
// without agent-sandbox.
type claims struct {
	c   *cluster
	api dynamic.Interface

	turn chan struct{} // full while a pool is made

	mu     sync.Mutex
	failed bool                 // the controller has given no pod in time: pods are made instead
	pools  map[string]time.Time // when one was last used, by name
}

// findClaims returns nil where the cluster has no agent-sandbox, or the account no right to use it.
func findClaims(ctx context.Context, c *cluster) (*claims, error) {
	served, err := c.cli.Discovery().ServerResourcesForGroupVersion(agents.String())
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && len(served.APIResources) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, c.d.Unavailable(c.cfg.Host, fmt.Errorf("asking for agent-sandbox: %w", err),
			"check that the cluster is up: kubectl cluster-info")
	}
	missing, err := c.missing(ctx, claimRights)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		c.d.log.Info("the cluster has agent-sandbox, and this account may not use it; pods are made instead",
			"missing", strings.Join(missing, ", "))
		return nil, nil
	}
	api, err := dynamic.NewForConfig(c.cfg)
	return &claims{c: c, api: api, turn: make(chan struct{}, 1), pools: map[string]time.Time{}}, err
}

// use reports whether a start is a claim.
func (l *claims) use() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.failed
}

func (l *claims) of(resource string) dynamic.ResourceInterface {
	return l.api.Resource(agents.WithResource(resource)).Namespace(l.c.namespace)
}

// create makes an object of agent-sandbox. One that is there already is no error.
func (l *claims) create(ctx context.Context, resource, kind, name, instance string,
	spec map[string]any) error {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(agents.String())
	o.SetKind(kind)
	o.SetName(name)
	o.SetLabels(map[string]string{labelApp: app, runtime.LabelInstance: instance})
	_, err := l.of(resource).Create(ctx, o, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// claim takes a pod like p, of which the name and the labels become the claim's, and waits until it
// runs. MaxAge bounds its life in place of p's deadline, which would count while it waits. The
// stream is one to the pod, or nil.
func (l *claims) claim(ctx context.Context, pods *pods, p *corev1.Pod, s runtime.Spec,
) (attached *stream, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.c.d.times.start, errUnready)
	defer cancel()
	pool, err := l.pool(ctx, p, s.Owner.Instance)
	if err != nil {
		return nil, l.c.explain(err)
	}
	labels := map[string]any{labelClaim: p.Name}
	for k, v := range p.Labels {
		if k != labelApp { // which the pool's have
			labels[claimable+strings.TrimPrefix(k, claimable)] = v
		}
	}
	pods.expect(p.Name)
	err = l.create(ctx, "sandboxclaims", "SandboxClaim", p.Name, s.Owner.Instance, map[string]any{
		"warmPoolRef":           map[string]any{"name": pool},
		"additionalPodMetadata": map[string]any{"labels": labels},
		"lifecycle": map[string]any{"shutdownPolicy": "Delete",
			"shutdownTime": time.Now().Add(s.MaxAge + startSlack).UTC().Format(time.RFC3339)},
	})
	if err == nil {
		early, stop := l.attachEarly(ctx, p.Name)
		err = pods.await(ctx, p.Name, running)
		stop()
		attached = <-early
	}
	got, _, _ := pods.last(p.Name)
	if attached != nil && (err != nil || got == nil || got.Name != attached.pod) {
		attached.abandon()
		attached = nil
	}
	if errors.Is(err, errUnready) {
		return nil, l.fail(p.Name)
	}
	return attached, l.c.explain(err)
}

// named returns the pod that a claim names: in its status or, with some versions of agent-sandbox,
// in an annotation, two writes before the pod has the claim's labels. Another claim may name it
// too.
func named(claim *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(claim.Object, "status", "sandbox", "name")
	return cmp.Or(name, claim.GetAnnotations()["agents.x-k8s.io/sandbox-name"])
}

// attachEarly attaches to the pod of a claim once the claim names it, beside the writes by which
// the pod gets the claim's labels. That spares a start what attaching takes. Nothing is sent to the
// pod before it has the labels. The stream is nil if the name wasn't known when stop was called; it
// fails if the pod doesn't run yet.
func (l *claims) attachEarly(ctx context.Context, claim string) (_ <-chan *stream, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	early := make(chan *stream, 1)
	go func() {
		defer close(early)
		w, err := l.of("sandboxclaims").Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: claim}))
		if err != nil { // the account may not, perhaps
			return
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			o, is := e.Object.(*unstructured.Unstructured)
			if !is || named(o) == "" {
				continue
			}
			if s, err := l.c.attach(named(o)); err == nil {
				early <- s
			}
			return
		}
	}()
	return early, stop
}

// fail has pods made instead of claimed, until the bridge connects again.
func (l *claims) fail(name string) error {
	l.mu.Lock()
	l.failed = true
	l.mu.Unlock()
	l.c.d.log.Warn("agent-sandbox gives no pods in time; from now on pods are made instead", "claim", name)
	return &Refusal{Err: fmt.Errorf("agent-sandbox gave no pod within %v", l.c.d.times.start),
		Next: "run the call again, which makes a pod of its own; then see: " +
			"kubectl get sandboxclaims,sandboxwarmpools"}
}

// pool returns the name of the pool of pods like p, which it makes if needed.
func (l *claims) pool(ctx context.Context, p *corev1.Pod, instance string) (string, error) {
	p.Spec.ActiveDeadlineSeconds = nil
	text, err := json.Marshal(p.Spec)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	name := leaseName(instance) + "-" + hex.EncodeToString(sum[:5])
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	l.mu.Lock()
	_, has := l.pools[name]
	l.pools[name] = time.Now()
	l.mu.Unlock()
	if has {
		return name, nil
	}
	spec, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(&p.Spec)
	if err != nil {
		return "", err
	}
	err = l.create(ctx, "sandboxtemplates", "SandboxTemplate", name, instance, map[string]any{
		"podTemplate": map[string]any{
			"spec":     spec,
			"metadata": map[string]any{"labels": map[string]any{labelApp: app}},
		},
		// A policy without rules denies all; without one pods could reach the internet.
		"networkPolicyManagement": "Managed", "networkPolicy": map[string]any{},
	})
	if err == nil {
		err = l.create(ctx, "sandboxwarmpools", "SandboxWarmPool", name, instance, map[string]any{
			"replicas": int64(poolSize), "sandboxTemplateRef": map[string]any{"name": name}})
	}
	if err != nil {
		l.mu.Lock()
		delete(l.pools, name)
		l.mu.Unlock()
		return "", err
	}
	return name, l.trim(ctx)
}

// trim removes the pool that was unused for longest where there are too many.
func (l *claims) trim(ctx context.Context) error {
	l.mu.Lock()
	oldest := ""
	for name, used := range l.pools {
		if oldest == "" || used.Before(l.pools[oldest]) {
			oldest = name
		}
	}
	many := len(l.pools) > maxPools
	if many {
		delete(l.pools, oldest)
	}
	l.mu.Unlock()
	if !many {
		return nil
	}
	return errors.Join(l.delete(ctx, "sandboxwarmpools", oldest), l.delete(ctx, "sandboxtemplates", oldest))
}

// remove deletes a claim whose pod isn't known, and waits until what was made for it is gone.
func (l *claims) remove(ctx context.Context, claim string) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	all := metav1.DeletePropagationForeground
	err := l.of("sandboxclaims").Delete(ctx, claim, metav1.DeleteOptions{PropagationPolicy: &all})
	for err == nil {
		if _, err = l.of("sandboxclaims").Get(ctx, claim, metav1.GetOptions{}); err != nil {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (l *claims) delete(ctx context.Context, resource, name string) error {
	err := l.of(resource).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// drop removes all that an instance has of agent-sandbox.
func (l *claims) drop(ctx context.Context, instance string) error {
	var errs []error
	for _, resource := range []string{"sandboxclaims", "sandboxwarmpools", "sandboxtemplates"} {
		errs = append(errs, l.of(resource).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: runtime.LabelInstance + "=" + instance}))
	}
	return errors.Join(errs...)
}

// reap drops what dead bridges have left. A bridge takes its lease before it makes a pool, so pools
// are asked for before leases are.
func (l *claims) reap(ctx context.Context) error {
	if l == nil {
		return nil
	}
	found, err := l.of("sandboxwarmpools").List(ctx, metav1.ListOptions{LabelSelector: labelApp + "=" + app})
	if err != nil || len(found.Items) == 0 {
		return err
	}
	living, _, err := l.c.d.leases.look(ctx, l.c)
	if err != nil {
		return err
	}
	for _, pool := range found.Items {
		if instance := pool.GetLabels()[runtime.LabelInstance]; !living[instance] {
			err = errors.Join(err, l.drop(ctx, instance))
		}
	}
	return err
}

// release drops what this bridge has.
func (l *claims) release() {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), atTheEnd)
	defer cancel()
	for instance := range l.c.d.leases.all() {
		if err := l.drop(ctx, instance); err != nil {
			l.c.d.log.Debug("pools not removed", "instance", instance, "err", err)
		}
	}
}

// names returns the claim and the pod of a container, empty for none. The id of one that was listed
// has both.
func (c *connection) names(id string) (claim, pod string) {
	if claim, pod, listed := strings.Cut(id, "/"); listed {
		return claim, pod
	}
	if p, _, _ := c.pods.last(id); p != nil {
		return p.Labels[labelClaim], p.Name
	}
	if c.claims == nil {
		return "", id
	}
	return id, id // a pod that isn't taken from a pool has the claim's name
}

// idOf returns the id of a pod that is listed.
func idOf(p *corev1.Pod) string {
	if claim := p.Labels[labelClaim]; claim != "" {
		return claim + "/" + p.Name
	}
	return p.Name
}

// labelsOf returns a pod's labels by the names that those of containers have everywhere.
func labelsOf(p *corev1.Pod) map[string]string {
	labels := map[string]string{}
	for k, v := range p.Labels {
		labels[strings.TrimPrefix(k, claimable)] = v
	}
	return labels
}
