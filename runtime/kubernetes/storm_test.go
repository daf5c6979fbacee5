//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestStorm: 20 bridges with 200 pods, of which 15 are killed at random moments while the API
// server goes away and comes back. Nothing of the dead is left after 60 s, no pod is attached to
// twice, and nothing of another's is touched. With MCP_BRIDGE_TEST_LONG=1 leases have their real
// times; otherwise they are a fifth of these.
func TestStorm(t *testing.T) {
	t.Run("pods", func(t *testing.T) { storm(t, false) })
	t.Run("claims", func(t *testing.T) {
		if os.Getenv("MCP_BRIDGE_TEST_LONG") == "" {
			t.Skip("MCP_BRIDGE_TEST_LONG is not set: only pods that aren't claimed")
		}
		storm(t, true)
	})
}

const (
	stormBridges = 20
	stormPods    = 10 // of each
	stormWaves   = 3
	stormDead    = 5 // in each wave
	stormBound   = time.Minute
)

// stormBridge is a bridge in a storm, and the instance that its pods have.
type stormBridge struct {
	d     *Driver
	owner runtime.Owner
	kill  context.CancelFunc
}

func storm(t *testing.T, agents bool) {
	f := newFake(t)
	if agents {
		withAgents(f)
	}
	f.mu.Lock()
	f.pods["foreign"] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	f.mu.Unlock()
	var runs sync.WaitGroup
	var living []*stormBridge
	for i := range stormBridges {
		living = append(living, startBridge(t, f, fmt.Sprint("b", i), &runs))
	}
	t.Cleanup(runs.Wait)
	eventually(t, "200 pods run", func() bool { return f.running(living) == stormBridges*stormPods })
	var dead []*stormBridge
	seed := uint64(1)
	if os.Getenv("MCP_BRIDGE_TEST_LONG") != "" {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range stormWaves {
		random.Shuffle(len(living), func(i, j int) { living[i], living[j] = living[j], living[i] })
		for _, b := range living[:stormDead] {
			f.mu.Lock()
			f.killed[b.d.cfg.Context] = true
			f.mu.Unlock()
		}
		dead, living = append(dead, living[:stormDead]...), living[stormDead:]
		f.lose()
		f.recover()
		eventually(t, "the living have their pods again", func() bool {
			return f.running(living) == len(living)*stormPods
		})
	}
	last := time.Now()
	t.Cleanup(func() {
		if left := f.left(dead); t.Failed() && len(left) > 0 {
			t.Errorf("left are %q", left)
		}
	})
	eventually(t, "nothing of the dead is left", func() bool { return len(f.left(dead)) == 0 })
	if took := time.Since(last); took > stormBound {
		t.Errorf("it took %v until nothing of the dead was left, want at most %v", took, stormBound)
	}
	for _, b := range append(living, dead...) {
		b.kill()
	}
	runs.Wait()
	for _, b := range living {
		b.d.Close()
	}
	eventually(t, "only the foreign pod is left", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.pods) == 1 && f.pods["foreign"] != nil && len(f.leases) == 0
	})
	for pod, n := range f.attached {
		if n > 1 {
			t.Errorf("pod %s was attached to %d times", pod, n)
		}
	}
}

// startBridge starts one, whose runs begin again when they end.
func startBridge(t *testing.T, f *fake, name string, runs *sync.WaitGroup) *stormBridge {
	d := f.driver(t, Config{Context: name})
	d.Times.Cleanup = 5 * time.Second
	if os.Getenv("MCP_BRIDGE_TEST_LONG") == "" {
		d.times.renew, d.times.lease, d.times.force = 2*time.Second, 8*time.Second, 3*time.Second
	}
	if _, err := d.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := &stormBridge{d: d, owner: f.target(d)(t).Owner}
	ctx, kill := context.WithCancel(t.Context())
	b.kill = kill
	s := f.target(d)(t).Spec("")
	s.Command, s.Owner, s.MaxAge = []string{"cat"}, b.owner, time.Hour
	for range stormPods {
		runs.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				std := silent()
				std.Stdin = blocked(t)
				_, _ = d.Run(ctx, s, std) // it fails while the server is away
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return b
}

// running counts the pods of these bridges that run.
func (f *fake) running(of []*stormBridge) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pods {
		for _, b := range of {
			if labelsOf(p)[runtime.LabelInstance] == b.owner.Instance && p.Status.Phase == corev1.PodRunning &&
				p.DeletionTimestamp == nil && f.attached[p.Name] > 0 {
				n++
			}
		}
	}
	return n
}

// left names what there is of these bridges.
func (f *fake) left(of []*stormBridge) (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range of {
		for _, p := range f.pods {
			if labelsOf(p)[runtime.LabelInstance] == b.owner.Instance {
				names = append(names, "pod "+p.Name)
			}
		}
		if f.leases[leaseName(b.owner.Instance)] != nil {
			names = append(names, leaseName(b.owner.Instance))
		}
		if f.agents == nil {
			continue
		}
		for key, o := range f.agents.objects {
			if o.GetLabels()[runtime.LabelInstance] == b.owner.Instance {
				names = append(names, key)
			}
		}
	}
	return names
}

// TestDeadReaper: pods are removed whose lease was removed by a bridge that died before it removed
// them, and those that the server didn't list or delete at first, by the next sweep.
func TestDeadReaper(t *testing.T) {
	for name, prepare := range map[string]func(*fake){
		"died": func(f *fake) { // it has removed the lease
			f.mu.Lock()
			delete(f.leases, leaseName("dead"))
			f.mu.Unlock()
		},
		"not listed":  func(f *fake) { f.failing("list pods"); f.overdue("dead") },
		"not deleted": func(f *fake) { f.failing("delete pods"); f.overdue("dead") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.lease("dead")
			f.pod("dead-pod", "dead")
			d := f.driver(t, Config{})
			d.times.renew = time.Hour // the test sweeps
			c, err := d.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			d.leases.sweep(t.Context(), c, false)
			prepare(f)
			for range 2 {
				d.leases.sweep(t.Context(), c, false)
				f.mu.Lock()
				f.refuse = nil
				f.mu.Unlock()
			}
			eventually(t, "the pod is gone", func() bool { _, pods := f.count(""); return pods == 0 })
		})
	}
}

// failing has a kind of request fail.
func (f *fake) failing(request string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = func(verb, resource string) *metav1.Status {
		if verb+" "+resource == request {
			return &metav1.Status{Code: 500, Reason: metav1.StatusReasonInternalError}
		}
		return nil
	}
}

// overdue makes a lease one that is over at first sight.
func (f *fake) overdue(instance string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.leases[leaseName(instance)]
	long := metav1.NewMicroTime(time.Now().Add(-48 * time.Hour))
	l.Spec.RenewTime = &long
	f.stamp(&l.ObjectMeta)
}
