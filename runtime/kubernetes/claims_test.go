//go:build kubernetes

package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// taken counts the pods that don't wait in a pool.
func (f *fake) taken() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.pods {
		if f.agents == nil || !strings.HasPrefix(f.agents.of[name], "pool/") {
			n++
		}
	}
	return n
}

// left returns how much there is of agent-sandbox, pods of its pools included.
func (s *sandboxes) left() (objects, pods int) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return len(s.objects), len(s.f.pods)
}

// TestClaims: the driver keeps its contract where pods are claimed, and leaves nothing.
func TestClaims(t *testing.T) {
	f := newFake(t)
	s := withAgents(f)
	d := f.driver(t, Config{})
	target := f.target(d)
	runtimetest.Behaviour(t, func(t *testing.T) runtimetest.Target {
		g := target(t)
		g.Count = f.taken
		return g
	})
	if made, _ := f.count("create sandboxclaims"); made == 0 {
		t.Error("nothing was claimed")
	}
	if pools, _ := f.count("create sandboxwarmpools"); pools == 0 {
		t.Error("no pool was made")
	}
	d.Close()
	eventually(
		t,
		"nothing is left",
		func() bool { objects, pods := s.left(); return objects+pods == 0 },
	)
}

// TestRequestsOfClaims: a claimed run costs the same requests as another one, the claim's two, and
// a watch of the claim until its pod is known. Its pod comes from the pool, has no deadline that
// counts while it waits, and a policy that denies all.
func TestRequestsOfClaims(t *testing.T) {
	f := newFake(t)
	s := withAgents(f)
	d := f.driver(t, Config{})
	g := f.target(d)(t)
	for range 5 {
		eventually(
			t,
			"the pool is full",
			func() bool { _, pods := s.left(); return pods == poolSize || pods == 0 },
		)
		f.mu.Lock()
		for name, p := range f.pods {
			if p.Spec.ActiveDeadlineSeconds != nil || p.Labels[labelApp] != app || p.Labels[labelDriver] != "" {
				t.Errorf(
					"pod %s waits with the deadline %v and the labels %v",
					name,
					p.Spec.ActiveDeadlineSeconds,
					p.Labels,
				)
			}
		}
		f.mu.Unlock()
		if _, err := d.Run(t.Context(), g.Spec("print(1)"), silent()); err != nil {
			t.Fatal(err)
		}
	}
	for request, want := range map[string]int{
		"create sandboxclaims": 5, "delete sandboxclaims": 5, "create pods/attach": 5, "delete pods": 5,
		"create sandboxtemplates": 1, "create sandboxwarmpools": 1, "create pods": 0, "get pods": 0,
		"list sandboxclaims": 0, "list sandboxwarmpools": 0,
	} {
		if got, _ := f.count(request); got != want {
			t.Errorf("%s: %d requests, want %d", request, got, want)
		}
	}
	if !reflect.DeepEqual(s.policy, map[string]any{}) {
		t.Errorf("the template's policy is %v, want one without rules", s.policy)
	}
}

// TestNamesOfClaims: what a claim says of its pod's name only spares time. Where it says nothing,
// or names a pod that isn't its own, the code runs in the one that has the claim's labels.
func TestNamesOfClaims(t *testing.T) {
	for _, name := range []string{
		"nothing", "no such pod", "another's", "its own", "its own, in an annotation"} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			s := withAgents(f)
			s.annotates = strings.HasSuffix(name, "annotation")
			var own []string
			s.names = func(pod string) string {
				own = append(own, pod)
				switch name {
				case "its own", "its own, in an annotation":
					return pod
				case "no such pod":
					return "another"
				case "another's":
					for other, of := range s.of {
						if other != pod && strings.HasPrefix(of, "pool/") {
							return other
						}
					}
				}
				return ""
			}
			if strings.HasPrefix(name, "its own") || name == "another's" {
				s.label = func(string) { // the pod that is named is attached to before this
					if !soon(func() bool { n, _ := f.count("create pods/attach"); return n > 0 }) {
						t.Error("no pod is attached to early")
					}
				}
			}
			d := f.driver(t, Config{})
			spec := f.target(d)(t).Spec("import sys; print(sys.stdin.read())")
			for len(own) < 3 {
				eventually(t, "the pool is full",
					func() bool { _, pods := s.left(); return pods == poolSize || pods == 0 })
				before, _ := f.count("create pods/attach")
				var out bytes.Buffer
				std := silent()
				std.Stdin, std.Stdout = strings.NewReader("said"), &out
				exit, err := d.Run(t.Context(), spec, std)
				if err != nil || exit.Code != 0 || out.String() != "said\n" {
					t.Fatalf("got %+v, %v, %q", exit, err, out.String())
				}
				f.mu.Lock()
				if len(own) > 0 && f.attached[own[len(own)-1]] == 0 {
					t.Errorf("%s wasn't attached to", own[len(own)-1])
				}
				f.mu.Unlock()
				if n, _ := f.count("create pods/attach"); strings.HasPrefix(name, "its own") && n != before+1 {
					t.Errorf("%d attachments for one pod", n-before)
				}
			}
		})
	}
}

// soon reports whether something is so within ten seconds.
func soon(so func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n := 0; !so(); n++ {
		if n == 2000 {
			return false
		}
		<-tick.C
	}
	return true
}

// TestPoolsAreBounded: a bridge keeps the pools of its last starts.
func TestPoolsAreBounded(t *testing.T) {
	f := newFake(t)
	s := withAgents(f)
	d := f.driver(t, Config{})
	g := f.target(d)(t)
	for i := range maxPools + 3 {
		if _, err := d.Run(t.Context(), g.Spec(fmt.Sprint("print(", i, ")")), silent()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "there are as many pools as the bound", func() bool {
		objects, pods := s.left()
		return objects == 2*maxPools && pods == maxPools*poolSize
	})
}

// TestClaimsOfTheDead: what a dead bridge had of agent-sandbox is removed, and what a living one
// has is not.
func TestClaimsOfTheDead(t *testing.T) {
	f := newFake(t)
	s := withAgents(f)
	dead := f.driver(t, Config{})
	dead.times.renew, dead.times.lease = time.Hour, time.Hour // it renews nothing
	owner := f.target(dead)(t).Owner
	spec := f.target(dead)(t).Spec("import time; time.sleep(300)")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		std := silent()
		std.Stdin = blocked(t)
		_, _ = dead.Run(ctx, spec, std) // its pod is taken away
	}()
	eventually(t, "a pod is claimed", func() bool { n, _ := f.count("create pods/attach"); return n == 1 })
	living := f.driver(t, Config{})
	living.times.renew, living.times.lease = 200*time.Millisecond, 2*time.Second
	g := f.target(living)(t)
	if _, err := living.Run(t.Context(), g.Spec("print(1)"), silent()); err != nil {
		t.Fatal(err)
	}
	gone := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, p := range f.pods {
			if labelsOf(p)[runtime.LabelInstance] == owner.Instance {
				return false
			}
		}
		for _, o := range s.objects {
			if o.GetLabels()[runtime.LabelInstance] == owner.Instance {
				return false
			}
		}
		return f.leases[leaseName(owner.Instance)] == nil
	}
	eventually(t, "nothing of the dead bridge is left", gone)
	eventually(t, "the living one has its pool", func() bool { _, pods := s.left(); return pods == poolSize })
	if objects, _ := s.left(); objects != 2 {
		t.Errorf("%d objects are left, want the living one's pool and template", objects)
	}
}

// TestNoClaims: without the rights, or once agent-sandbox gave nothing in time, pods are made as
// where there is none.
func TestNoClaims(t *testing.T) {
	for name, prepare := range map[string]func(*fake, *sandboxes){
		"no right":      func(f *fake, _ *sandboxes) { f.denied["create sandboxclaims"] = true },
		"no controller": func(_ *fake, s *sandboxes) { s.asleep = true },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			s := withAgents(f)
			prepare(f, s)
			d := f.driver(t, Config{})
			if s.asleep {
				d.times.start = time.Second
			}
			g := f.target(d)(t)
			_, err := d.Run(t.Context(), g.Spec("print(1)"), silent())
			if s.asleep {
				said(t, err, "agent-sandbox gave no pod within 1s", "run the call again")
				d.times.start = time.Minute
				_, err = d.Run(t.Context(), g.Spec("print(1)"), silent())
			}
			if err != nil {
				t.Fatal(err)
			}
			made, pods := f.count("create pods")
			if claimed := len(s.list("sandboxclaims", labels.Everything())); made != 1 || pods != 0 || claimed != 0 {
				t.Errorf("%d pods were made, %d and %d claims are left", made, pods, claimed)
			}
		})
	}
}

// TestPodOfAClaim: the claim gives a pod the labels of its owner, by which it is found.
func TestPodOfAClaim(t *testing.T) {
	o := runtime.Owner{Instance: "I", PID: 7, BootID: "b"}
	p := &corev1.Pod{}
	p.Name, p.Labels = "pool-1", map[string]string{labelClaim: "mine", labelApp: app}
	for k, v := range o.Labels() {
		p.Labels[claimable+k] = v
	}
	if got, ok := runtime.OwnerOf(labelsOf(p)); !ok || got != o || idOf(p) != "mine/pool-1" {
		t.Errorf("got %+v, %v, %s", got, ok, idOf(p))
	}
}
