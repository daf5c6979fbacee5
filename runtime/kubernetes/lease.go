//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// leases tell the bridges of a namespace of each other. Each bridge renews one of its own; one that
// was not seen to change for as long as it lasts is over, by the clock of the one that looks, and
// its bridge dead. Any other bridge then removes the lease, and after that the pods of its owner.
//
// They are the driver's and outlive its connections: a bridge that connects again still has pods.
type leases struct {
	d     *Driver
	start sync.Once

	mu      sync.Mutex
	held    map[string]*hold    // by instance
	seen    map[string]observed // others', by name
	left    bool                // pods of the dead may be: the next sweep looks for them
	term    context.Context     //nolint:containedctx // of streams; ends when a lease of ours is over
	endTerm context.CancelFunc
}

// hold is a lease of ours.
type hold struct {
	turn    chan struct{} // full while it is being written
	home    string        // the cluster that it was written in
	lease   *coordinationv1.Lease
	renewed time.Time // guarded by leases.mu; zero before it was written
}

// observed is when a lease was first seen as it is.
type observed struct {
	renewed time.Time // by its holder's clock
	at      time.Time // by ours
}

const (
	sweepEvery = 2 // looks at the leases between two renewals
	reapEvery  = 12
	atTheEnd   = 5 * time.Second // for removing our leases
)

func newLeases(d *Driver) *leases {
	l := &leases{d: d, held: map[string]*hold{}, seen: map[string]observed{}}
	l.term, l.endTerm = context.WithCancel(context.Background())
	return l
}

// keep renews what is held and looks after the leases of others, until the driver is closed.
func (l *leases) keep() {
	ctx := l.d.Life()
	tick := time.NewTicker(l.d.times.renew / sweepEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
			l.tend(ctx, n)
		case <-ctx.Done():
			return
		}
	}
}

// tend is one turn of keep. Where a lease is held and the connection was dropped, it connects
// again: nothing else may do so before the lease is over.
func (l *leases) tend(ctx context.Context, n int) {
	within, cancel := context.WithTimeout(ctx, l.d.times.renew)
	defer cancel()
	c, ok := l.d.Current()
	if !ok && len(l.all()) > 0 {
		var err error
		c, err = l.d.Connect(within)
		ok = err == nil
	}
	if ok && n%sweepEvery == 0 {
		l.renewAll(within, c)
	}
	l.lapse()
	if ok {
		l.sweep(within, c, n%reapEvery == 0)
	}
}

// lapse cuts the streams of all pods once a lease is over: other bridges may remove the pods at any
// time, so a run must not begin in one.
func (l *leases) lapse() {
	lost := l.lost()
	if lost == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endTerm()
	l.term, l.endTerm = context.WithCancel(context.Background())
}

// streaming returns a context that ends when a lease of ours is over.
func (l *leases) streaming() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term
}

// lost returns that a lease of ours is over, and nil while none is.
func (l *leases) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.held {
		if since := time.Since(h.renewed); !h.renewed.IsZero() && since > l.d.times.lease {
			return fmt.Errorf(
				"its API server has not renewed this bridge's lease for %v, so other bridges may remove "+
					"its pods",
				since.Round(time.Second),
			)
		}
	}
	return nil
}

// leaseName returns the name of an instance's lease.
func leaseName(instance string) string { return "mcp-bridge-" + strings.ToLower(instance) }

// hold makes sure that an owner's lease is renewed: the pods made after it are not taken for a dead
// bridge's.
func (l *leases) hold(ctx context.Context, c *cluster, o runtime.Owner) error {
	l.mu.Lock()
	h := l.held[o.Instance]
	if h == nil {
		h = &hold{turn: make(chan struct{}, 1)}
		l.held[o.Instance] = h
	}
	l.mu.Unlock()
	err := l.renew(ctx, c, o.Instance, h, l.d.times.lease/2)
	if err == nil {
		return nil
	}
	if lost := l.d.Lost(); lost != nil {
		return fmt.Errorf("%w: %w", lost, err)
	}
	return fmt.Errorf("taking a lease: %w", c.explain(err))
}

// all returns what is held.
func (l *leases) all() map[string]*hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.held)
}

func (l *leases) renewAll(ctx context.Context, c *connection) {
	for instance, h := range l.all() {
		err := l.renew(ctx, c.cluster, instance, h, 0)
		if err == nil || ctx.Err() != nil && l.d.Life().Err() != nil {
			continue
		}
		if apierrors.IsUnauthorized(err) { // the kubeconfig may have another token now
			err = l.d.Engine.Lost(c, err)
		}
		l.d.log.Warn("the lease of this bridge's pods could not be renewed; when it is over, no code is run, and "+
			"other bridges remove the pods", "lease", leaseName(instance), "err", err)
	}
}

// renew writes a lease, unless that was done a shorter time ago than young.
func (l *leases) renew(
	ctx context.Context,
	c *cluster,
	instance string,
	h *hold,
	young time.Duration,
) error {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.turn }()
	if h.home != c.Home() {
		h.lease = nil
	}
	if h.lease != nil && time.Since(h.renewed) < young {
		return nil
	}
	began := time.Now()
	lease, err := l.write(ctx, c, instance, h.lease)
	if err != nil {
		return err
	}
	h.lease, h.home = lease, c.Home()
	l.mu.Lock()
	h.renewed = began
	l.mu.Unlock()
	return nil
}

// write renews a lease that was written before, or makes it, no matter who removed or changed it
// meanwhile.
func (l *leases) write(ctx context.Context, c *cluster, instance string, was *coordinationv1.Lease,
) (*coordinationv1.Lease, error) {
	api := c.leases()
	now := metav1.NewMicroTime(time.Now())
	if was != nil {
		was = was.DeepCopy()
		was.Spec.RenewTime = &now
		lease, err := api.Update(ctx, was, metav1.UpdateOptions{})
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return lease, err
		}
	}
	host, _ := os.Hostname()
	holder := fmt.Sprintf("%s/%d", host, os.Getpid())
	lease, err := api.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: leaseName(instance), Namespace: c.namespace,
			Labels: map[string]string{labelApp: app, runtime.LabelInstance: instance}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &now, RenewTime: &now,
			LeaseDurationSeconds: ptr(int32(l.d.times.lease / time.Second))},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return lease, err
	}
	// Ours, of an earlier connection, or changed by somebody: as it is now.
	found, err := api.List(ctx, metav1.ListOptions{LabelSelector: runtime.LabelInstance + "=" + instance})
	if err != nil {
		return nil, err
	}
	if len(found.Items) == 0 {
		return nil, fmt.Errorf("lease %s is there, and without the label of its owner", leaseName(instance))
	}
	lease = &found.Items[0]
	lease.Spec.RenewTime = &now
	return api.Update(ctx, lease, metav1.UpdateOptions{})
}

// look returns the instances that may be alive, and the leases that are over.
func (l *leases) look(ctx context.Context, c *cluster,
) (living map[string]bool, over []coordinationv1.Lease, err error) {
	found, err := c.leases().List(ctx, metav1.ListOptions{LabelSelector: labelApp + "=" + app})
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	living, seen, now := map[string]bool{}, map[string]observed{}, time.Now()
	for _, lease := range found.Items {
		var renewed time.Time
		if lease.Spec.RenewTime != nil {
			renewed = lease.Spec.RenewTime.Time
		}
		o := l.seen[lease.Name]
		if o.at.IsZero() || !o.renewed.Equal(renewed) {
			o = observed{renewed: renewed, at: now}
		}
		seen[lease.Name] = o
		instance := lease.Labels[runtime.LabelInstance]
		switch {
		case l.held[instance] != nil:
			living[instance] = true
		case now.Sub(o.at) > l.d.times.lease, now.Sub(renewed) > l.d.times.settled:
			over = append(over, lease)
		default:
			living[instance] = true
		}
	}
	for name := range l.seen {
		if _, still := seen[name]; !still { // who removed it may have died before it removed the pods
			l.left = true
		}
	}
	l.seen = seen
	return living, over, nil
}

// sweep removes the leases that are over, and then the pods of their owners, for which it doesn't
// wait: there may be hundreds. A lease that is renewed meanwhile stays. With all it sees to what
// earlier sweeps, and a bridge that died in one, have left: pods without a lease, and those whose
// node doesn't answer. What it could not do is for the next.
func (l *leases) sweep(ctx context.Context, c *connection, all bool) {
	_, over, err := l.look(ctx, c.cluster)
	if err != nil {
		return // the next sweep tries again, and a call says what is wrong
	}
	for _, lease := range over {
		err := c.leases().Delete(ctx, lease.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{ResourceVersion: &lease.ResourceVersion},
		})
		if err == nil {
			l.leave(true)
		}
	}
	if !l.leave(false) && !all {
		return
	}
	if err := l.reap(ctx, c, all); err != nil {
		l.leave(true)
		if ctx.Err() == nil {
			l.d.log.Warn("pods of dead bridges could not be removed", "err", err)
		}
	}
}

// leave sets whether pods of the dead may be left, and returns whether they might before.
func (l *leases) leave(left bool) (before bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.left = l.left, left
	return before
}

// reap removes what bridges without a lease have left; with all it waits until it is gone.
func (l *leases) reap(ctx context.Context, c *connection, all bool) error {
	if err := c.claims.reap(ctx); err != nil {
		return err
	}
	found, err := l.d.Orphans(ctx, l.d.self)
	for _, o := range found {
		if err = c.Kill(ctx, o.ID); err != nil {
			break
		}
		l.d.log.Info("pod of a dead bridge is removed", "pod", o.Name, "was_running", o.Running)
	}
	if err == nil && all {
		_, err = runtime.Reap(ctx, l.d, l.d.self)
	}
	return err
}

// release removes our leases, once their pods are gone.
func (l *leases) release(c *cluster) {
	ctx, cancel := context.WithTimeout(context.Background(), atTheEnd)
	defer cancel()
	for instance := range l.all() {
		err := c.leases().Delete(ctx, leaseName(instance), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			l.d.log.Debug("lease not removed", "lease", leaseName(instance), "err", err)
		}
	}
}
