//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
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
type leases struct {
	c      *connection
	cancel context.CancelFunc
	keeper sync.WaitGroup

	mu   sync.Mutex
	held map[string]*hold    // by instance
	seen map[string]observed // others', by name
}

// hold is a lease of ours.
type hold struct {
	turn    chan struct{} // full while it is being written
	lease   *coordinationv1.Lease
	renewed time.Time
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

// keepLeases renews what will be held and looks after those of others.
func keepLeases(c *connection) *leases {
	ctx, cancel := context.WithCancel(context.Background())
	l := &leases{c: c, cancel: cancel, held: map[string]*hold{}, seen: map[string]observed{}}
	l.keeper.Go(func() { l.keep(ctx) })
	return l
}

func (l *leases) end() {
	l.cancel()
	l.keeper.Wait()
}

func (l *leases) keep(ctx context.Context) {
	tick := time.NewTicker(l.c.d.times.renew / sweepEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		within, cancel := context.WithTimeout(ctx, l.c.d.times.renew)
		if n%sweepEvery == 0 {
			l.renewAll(within)
		}
		l.sweep(within, n%reapEvery == 0)
		cancel()
	}
}

// leaseName returns the name of an instance's lease.
func leaseName(instance string) string { return "mcp-bridge-" + strings.ToLower(instance) }

// hold makes sure that an owner's lease is renewed: the pods made after it are not taken for a dead
// bridge's.
func (l *leases) hold(ctx context.Context, o runtime.Owner) error {
	l.mu.Lock()
	h := l.held[o.Instance]
	if h == nil {
		h = &hold{turn: make(chan struct{}, 1)}
		l.held[o.Instance] = h
	}
	l.mu.Unlock()
	return l.renew(ctx, o.Instance, h, l.c.d.times.lease/2)
}

func (l *leases) renewAll(ctx context.Context) {
	l.mu.Lock()
	all := make(map[string]*hold, len(l.held))
	for instance, h := range l.held {
		all[instance] = h
	}
	l.mu.Unlock()
	for instance, h := range all {
		if err := l.renew(ctx, instance, h, 0); err != nil && ctx.Err() == nil {
			l.c.d.log.Warn("the lease of this bridge's pods could not be renewed; other bridges remove them when it "+
				"is over", "lease", leaseName(instance), "err", err)
		}
	}
}

// renew writes a lease, unless that was done a shorter time ago than young.
func (l *leases) renew(ctx context.Context, instance string, h *hold, young time.Duration) error {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.turn }()
	if h.lease != nil && time.Since(h.renewed) < young {
		return nil
	}
	began := time.Now()
	lease, err := l.write(ctx, instance, h.lease)
	if err != nil {
		return err
	}
	h.lease, h.renewed = lease, began
	return nil
}

// write renews a lease that was written before, or makes it, whoever removed or changed it
// meanwhile.
func (l *leases) write(ctx context.Context, instance string, was *coordinationv1.Lease,
) (*coordinationv1.Lease, error) {
	api := l.c.cli.CoordinationV1().Leases(l.c.namespace)
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
		ObjectMeta: metav1.ObjectMeta{Name: leaseName(instance), Namespace: l.c.namespace,
			Labels: map[string]string{labelApp: app, runtime.LabelInstance: instance}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &now, RenewTime: &now,
			LeaseDurationSeconds: ptr(int32(l.c.d.times.lease / time.Second))},
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

// alive lists the leases and returns a function that says whether an instance may be alive.
func (l *leases) alive(ctx context.Context) (func(instance string) bool, error) {
	living, _, err := l.look(ctx)
	return func(instance string) bool { return living[instance] }, err
}

// look returns the instances that may be alive, and the leases that are over.
func (l *leases) look(ctx context.Context) (living map[string]bool, over []coordinationv1.Lease, err error) {
	found, err := l.c.cli.CoordinationV1().Leases(l.c.namespace).List(ctx,
		metav1.ListOptions{LabelSelector: labelApp + "=" + app})
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
		case now.Sub(o.at) > l.c.d.times.lease, now.Sub(renewed) > l.c.d.times.settled:
			over = append(over, lease)
		default:
			living[instance] = true
		}
	}
	l.seen = seen
	return living, over, nil
}

// sweep removes the leases that are over, and then the pods of their owners, for which it doesn't
// wait: there may be hundreds. A lease that is renewed meanwhile stays. With all it sees to what
// earlier sweeps, and a bridge that died in one, have left: pods without a lease, and those whose
// node doesn't answer.
func (l *leases) sweep(ctx context.Context, all bool) {
	_, over, err := l.look(ctx)
	if err != nil {
		return // the next sweep tries again, and a call says what is wrong
	}
	removed := false
	for _, lease := range over {
		err := l.c.cli.CoordinationV1().Leases(l.c.namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{ResourceVersion: &lease.ResourceVersion},
		})
		removed = removed || err == nil
	}
	if !removed && !all {
		return
	}
	if err := l.c.claims.reap(ctx, l.alive); err != nil && ctx.Err() == nil {
		l.c.d.log.Warn("pools of dead bridges could not be removed", "err", err)
	}
	found, err := l.c.d.Orphans(ctx, l.c.d.self)
	for _, o := range found {
		if err = l.c.Kill(ctx, o.ID); err != nil {
			break
		}
		l.c.d.log.Info("pod of a dead bridge is removed", "pod", o.Name, "was_running", o.Running)
	}
	if err == nil && all {
		_, err = runtime.Reap(ctx, l.c.d, l.c.d.self)
	}
	if err != nil && ctx.Err() == nil {
		l.c.d.log.Warn("pods of dead bridges could not be removed", "err", err)
	}
}

// release removes our leases, once their pods are gone.
func (l *leases) release() {
	ctx, cancel := context.WithTimeout(context.Background(), atTheEnd)
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	for instance := range l.held {
		err := l.c.cli.CoordinationV1().Leases(l.c.namespace).Delete(ctx, leaseName(instance),
			metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			l.c.d.log.Debug("lease not removed", "lease", leaseName(instance), "err", err)
		}
	}
}
