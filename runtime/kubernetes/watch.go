//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"crypto/rand"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// pods is what the API server tells of the pods of a connection: one watch for all of them, so that
// a pod costs no request while it lives.
type pods struct {
	id      string // of the connection, which its pods are labelled with
	cancel  context.CancelFunc
	watcher sync.WaitGroup

	mu   sync.Mutex
	seen map[string]*record // by name, or claim; from before a pod is made until it is removed
	less chan struct{}      // closed when one is forgotten
}

// record is the last that was heard of a pod.
type record struct {
	pod     *corev1.Pod // nil until it was seen
	gone    bool
	changed chan struct{} // closed by the next that is heard
}

// watchPods begins to watch the pods of a connection.
func watchPods(c *cluster) *pods {
	ctx, cancel := context.WithCancel(context.Background())
	w := &pods{
		id:     strings.ToLower(rand.Text()),
		cancel: cancel,
		seen:   map[string]*record{},
		less:   make(chan struct{}),
	}
	api := c.cli.CoreV1().Pods(c.namespace)
	selector := labelDriver + "=" + w.id
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
			o.LabelSelector = selector
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return api.Watch(ctx, o)
		},
	}
	r := cache.NewReflectorWithOptions(list, &corev1.Pod{}, store{w}, cache.ReflectorOptions{
		// By itself it would wait for up to a minute after some failures, and a pod's start wouldn't be
		// heard of though the API server is back. A server that refuses is asked as often.
		Backoff: &wait.Backoff{Duration: c.d.times.start / 25, Jitter: 1},
	})
	w.watcher.Go(func() { r.RunWithContext(ctx) })
	return w
}

// store is what a reflector tells of pods.
type store struct{ w *pods }

func (s store) Add(o any) error    { s.w.heard(o, false); return nil }
func (s store) Update(o any) error { s.w.heard(o, false); return nil }
func (s store) Delete(o any) error { s.w.heard(o, true); return nil }
func (s store) Resync() error      { return nil }

// Replace hears of all pods that there are. Those that it has heard of before and are missing went
// while nothing was heard.
func (s store) Replace(all []any, _ string) error {
	there := map[types.UID]bool{}
	for _, o := range all {
		s.w.heard(o, false)
		if p, ok := o.(*corev1.Pod); ok {
			there[p.UID] = true
		}
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, r := range s.w.seen {
		if r.pod != nil && !there[r.pod.UID] {
			r.hear(r.pod, true)
		}
	}
	return nil
}

// drain blocks until nothing is expected any more, or ctx ends.
func (w *pods) drain(ctx context.Context) {
	for {
		w.mu.Lock()
		left, less := len(w.seen), w.less
		w.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-less:
		case <-ctx.Done():
			return
		}
	}
}

func (w *pods) end() {
	w.cancel()
	w.watcher.Wait()
}

// heard keeps what the API server said of a pod, if it is one that somebody asks about.
func (w *pods) heard(o any, gone bool) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	p.ManagedFields = nil // a third of a pod's size, for which nothing asks
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.seen[cmp.Or(p.Labels[labelClaim], p.Name)]
	if r == nil {
		return
	}
	if r.pod != nil && r.pod.UID != p.UID {
		return // another's, with the labels of ours
	}
	r.hear(p, gone)
}

func (r *record) hear(p *corev1.Pod, gone bool) {
	r.pod, r.gone = p, gone
	close(r.changed)
	r.changed = make(chan struct{})
}

// expect keeps what is heard of a pod from now on.
func (w *pods) expect(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[name] = &record{changed: make(chan struct{})}
}

func (w *pods) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.seen[name]; r != nil {
		r.gone = true
		close(r.changed)
		delete(w.seen, name)
		close(w.less)
		w.less = make(chan struct{})
	}
}

// last returns what was last heard of a pod; pod is nil for nothing. A pod that isn't expected is
// gone.
func (w *pods) last(name string) (pod *corev1.Pod, gone bool, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.seen[name]
	if r == nil {
		return nil, true, nil
	}
	return r.pod, r.gone, r.changed
}

// expected reports whether a pod is one of this connection's, and not forgotten yet.
func (w *pods) expected(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[name] != nil
}

// await calls done with each that is heard of a pod until it returns true or an error, or until ctx
// ends. The pod may be nil.
func (w *pods) await(ctx context.Context, name string, done func(p *corev1.Pod, gone bool) (bool,
	error)) error {
	for {
		p, gone, changed := w.last(name)
		if ok, err := done(p, gone); ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
