//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// Create implements engine.Client. A pod starts by itself, so this waits until it runs.
func (c *connection) Create(ctx context.Context, name string, s runtime.Spec) (string, error) {
	if err := c.d.leases.hold(ctx, c.cluster, s.Owner); err != nil {
		return "", err
	}
	make := func() *corev1.Pod { return c.pod(name, s) }
	if c.claims.use() {
		stream, err := c.claims.claim(ctx, c.pods, make(), s)
		if stream != nil {
			c.mu.Lock()
			c.streams[podName(name)] = stream
			c.mu.Unlock()
		}
		return podName(name), err
	}
	if err := c.start(ctx, make, c.d.times.start, running); err != nil {
		return "", err
	}
	return podName(name), nil
}

// errUnready means that a pod was not as far in time.
var errUnready = errors.New("it was not ready in time")

// start makes a pod and waits until done says that it is as far. Where a node gives the pod no
// sandbox, and no pod has had a user namespace yet, it is made again without one.
func (c *connection) start(ctx context.Context, make func() *corev1.Pod, patience time.Duration,
	done func(*corev1.Pod, bool) (bool, error),
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errUnready)
	defer cancel()
	p := make()
	first := ctx
	tries := p.Spec.HostUsers != nil && !c.d.ownUsersWork.Load()
	if tries {
		var end context.CancelFunc
		first, end = context.WithTimeoutCause(ctx, c.d.times.users, errUnready)
		defer end()
	}
	err := c.startOnce(ctx, first, p, done)
	switch {
	case err == nil && p.Spec.HostUsers != nil:
		c.d.ownUsersWork.Store(true)
	case tries && errors.Is(err, errUnready) && ctx.Err() == nil && c.pods.withoutSandbox(p.Name):
		if err := c.Remove(ctx, p.Name); err != nil {
			return err
		}
		p.Spec.HostUsers = nil
		if err = c.startOnce(ctx, ctx, p, done); err == nil && !c.d.sharedUsers.Swap(true) {
			c.d.log.Warn("the cluster's nodes give pods no user namespace of their own; they share the nodes'")
		}
	}
	if errors.Is(err, errUnready) {
		return c.pods.unready(p.Name, patience)
	}
	return err
}

func (c *connection) startOnce(ctx, wait context.Context, p *corev1.Pod,
	done func(*corev1.Pod, bool) (bool, error),
) error {
	c.pods.expect(p.Name)
	if _, err := c.cli.CoreV1().Pods(c.namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return c.explain(err)
	}
	return c.pods.await(wait, p.Name, done)
}

// withoutSandbox reports whether a pod has a node, which has made no sandbox for it yet.
func (w *pods) withoutSandbox(name string) bool {
	p, _, _ := w.last(name)
	if p == nil || p.Spec.NodeName == "" {
		return false
	}
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReadyToStartContainers {
			return cond.Status != corev1.ConditionTrue
		}
	}
	return true
}

// probeAge bounds the life of a pod of withPod by the cluster's own clock.
const probeAge = 10 * time.Minute

// withPod makes a pod that runs none of the user's code, waits until done says that it is as far,
// calls then, which may be nil, and removes the pod.
func (c *connection) withPod(
	ctx context.Context,
	ref string,
	change func(*corev1.Pod),
	patience time.Duration,
	done func(*corev1.Pod, bool) (bool, error),
	then func(*corev1.Pod),
) (err error) {
	s := runtime.Spec{
		Image: ref, Command: []string{"true"}, User: "65534:65534", Owner: c.d.self, MaxAge: probeAge,
		Limits: runtime.Limits{Memory: 64 << 20, PIDs: 16, NoFile: 64, Shm: 1 << 20},
	}
	if err := c.d.leases.hold(ctx, c.cluster, s.Owner); err != nil {
		return err
	}
	name := s.Owner.NewName()
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.d.Times.Cleanup)
		defer cancel()
		if left := c.Remove(late, name); left != nil && err == nil {
			err = fmt.Errorf("pod %s could not be removed: %w", podName(name), left)
		}
	}()
	make := func() *corev1.Pod {
		p := c.pod(name, s)
		change(p)
		return p
	}
	if err := c.start(ctx, make, patience, done); err != nil {
		return err
	}
	if p, _, _ := c.pods.last(podName(name)); then != nil {
		then(p)
	}
	return nil
}

// Attach implements engine.Client.
func (c *connection) Attach(ctx context.Context, id string) (engine.Stream, error) {
	c.mu.Lock()
	early := c.streams[id]
	c.mu.Unlock()
	if early != nil {
		if early.open(ctx) == nil {
			return early, nil
		}
		_ = early.Close() // it has failed
	}
	p, _, _ := c.pods.last(id)
	if p == nil {
		return nil, errors.New("the cluster hasn't told of its pod")
	}
	s, err := c.attach(p.Name)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[id] = s
	return s, nil
}

// Start implements engine.Client: it has the container answer.
func (c *connection) Start(ctx context.Context, id string) error {
	c.mu.Lock()
	s := c.streams[id]
	delete(c.streams, id)
	c.mu.Unlock()
	if s == nil {
		return errors.New("it isn't attached")
	}
	err := s.open(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// Why is in the pod's status, which comes a moment later.
	ctx, cancel := context.WithTimeout(ctx, c.d.times.start/10)
	defer cancel()
	if why := c.pods.await(ctx, id, ended); why != nil && ctx.Err() == nil {
		return why
	}
	return c.explain(err)
}

// Wait implements engine.Client.
func (c *connection) Wait(ctx context.Context, id string, begun func()) (code int, err error) {
	begun()
	var exit runtime.Exit
	err = c.pods.await(ctx, id, func(p *corev1.Pod, gone bool) (ok bool, err error) {
		exit, ok, err = exitOf(p)
		if !ok && gone {
			exit.Code, ok = -1, true
		}
		return ok, err
	})
	return exit.Code, err
}

// Inspect implements engine.Client. It asks for nothing: the watch tells.
func (c *connection) Inspect(_ context.Context, id string) (runtime.Exit, engine.State, error) {
	p, gone, _ := c.pods.last(id)
	exit, ok, err := exitOf(p)
	switch {
	case err != nil:
		return exit, engine.Unknown, err
	case ok:
		return exit, engine.Ended, nil
	case gone:
		return exit, engine.Removed, nil
	}
	return exit, engine.Unknown, nil
}

// OutOfMemory implements engine.Client.
func (c *connection) OutOfMemory(_ context.Context, id string) bool {
	p, _, _ := c.pods.last(id)
	exit, _, _ := exitOf(p)
	return exit.OOMKilled
}

// grace is the least that a kubelet gives a container: a second between TERM, which the guest
// doesn't heed, and KILL. With 0 the pod is gone from the API while its container still runs.
const grace = 1

// Kill implements engine.Client.
func (c *connection) Kill(ctx context.Context, id string) error {
	_, err := c.delete(ctx, id, grace)
	return err
}

// delete deletes a pod, and its claim first: a pod that is claimed would be made again.
func (c *connection) delete(ctx context.Context, id string, grace int64) (gone bool, err error) {
	claim, pod := c.names(id)
	if c.claims == nil { // without the rights another bridge's claims can't be ended, and their pods can
		claim = ""
	}
	switch claim {
	case "":
	case pod: // which isn't known, or has the claim's name
		err = c.claims.remove(ctx, claim)
	default:
		err = c.claims.delete(ctx, "sandboxclaims", claim)
	}
	if err != nil {
		return false, err
	}
	err = c.cli.CoreV1().Pods(c.namespace).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// Remove implements engine.Client. It waits until the node has said that nothing is left of the
// pod. A pod whose node has been silent for long after it was told is taken from the API. One that
// is given up is forgotten: it is owed from then on, perhaps by another connection.
func (c *connection) Remove(ctx context.Context, name string) (err error) {
	id := podName(name)
	defer func() {
		var op *net.OpError
		if err == nil || ctx.Err() != nil || errors.As(err, &op) {
			c.pods.forget(id)
		}
	}()
	c.mu.Lock()
	if s := c.streams[id]; s != nil {
		_ = s.Close()
		delete(c.streams, id)
	}
	c.mu.Unlock()
	asked := int64(grace)
	if p, _, _ := c.pods.last(id); p != nil && c.overdue(p) {
		asked = 0
	}
	none, err := c.delete(ctx, id, asked)
	switch {
	case err != nil:
		return c.explain(err)
	case none:
		c.pods.forget(id)
		return nil
	case !c.pods.expected(id):
		return c.removed(ctx, id)
	}
	return c.pods.await(ctx, id, func(_ *corev1.Pod, gone bool) (bool, error) { return gone, nil })
}

// overdue reports whether a pod was deleted so long ago that its node must be away.
func (c *connection) overdue(p *corev1.Pod) bool {
	at := p.DeletionTimestamp
	return at != nil && time.Since(at.Time) > c.d.times.force
}

// lookAgain is the time between two looks whether another bridge's pod is gone.
const lookAgain = 250 * time.Millisecond

// removed waits until a pod that isn't watched is gone.
func (c *connection) removed(ctx context.Context, id string) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	_, pod := c.names(id)
	for {
		p, err := c.cli.CoreV1().Pods(c.namespace).Get(ctx, pod, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return c.explain(err)
		case c.overdue(p):
			_, err := c.delete(ctx, id, 0)
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// List implements engine.Client. The leases are asked for after the pods: a bridge takes its lease
// before it makes a pod.
func (c *connection) List(ctx context.Context) ([]engine.Container, error) {
	found, err := c.cli.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: labelApp +
		"=" + app})
	if err != nil {
		return nil, c.explain(err)
	}
	living, _, err := c.d.leases.look(ctx, c.cluster)
	if err != nil {
		return nil, c.explain(err)
	}
	var all []engine.Container
	for _, p := range found.Items {
		labels := labelsOf(&p)
		all = append(all, engine.Container{
			ID: idOf(&p), Names: []string{p.Name}, Labels: labels, Created: p.CreationTimestamp.Time,
			Running: p.Status.Phase == corev1.PodRunning, Forsaken: !living[labels[runtime.LabelInstance]],
		})
	}
	return all, nil
}
