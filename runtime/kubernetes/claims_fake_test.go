//go:build kubernetes

package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// sandboxes stands in for the controller of agent-sandbox, as far as its source was read and tried
// (TestClusterClaims): a pool is filled; a claim adopts a pod of it, best one that runs, whose name
// stays, or else gets one of the claim's name; labels of a claim must have a listed domain and are
// given to the pod; a pod that is deleted while its claim is there is made again; what a claim or a
// pool has is removed with it, before it where that is asked for and otherwise after it.
type sandboxes struct {
	f         *fake
	objects   map[string]*unstructured.Unstructured // by resource and name
	of        map[string]string                     // claims or pools of pods, by the pod's name
	made      int
	ending    map[string]bool
	adopted   map[string]chan struct{} // closed once a claim names its pod; by the claim's name
	names     func(string) string      // what a claim says that its pod's name is; f.mu is held
	annotates bool                     // claims say so in an annotation
	label     func(string)             // called before a pod has the labels of its claim; may be nil
	asleep    bool                     // nothing is done for a claim
	policy    any                      // of the last template
}

// withAgents makes a fake serve agent-sandbox.
func withAgents(f *fake) *sandboxes {
	s := &sandboxes{f: f, objects: map[string]*unstructured.Unstructured{}, of: map[string]string{},
		ending: map[string]bool{}, adopted: map[string]chan struct{}{},
		names: func(pod string) string { return pod }}
	f.agents = s
	return s
}

// serve answers requests of agent-sandbox's API.
func (s *sandboxes) serve(w http.ResponseWriter, r *http.Request) {
	if s == nil {
		http.NotFound(w, r)
		return
	}
	_, rest, in := strings.Cut(r.URL.Path, "/namespaces/"+testNamespace+"/")
	if !in {
		answerJSON(w, metav1.APIResourceList{GroupVersion: agents.String(),
			APIResources: []metav1.APIResource{{Name: "sandboxclaims"}}})
		return
	}
	resource, name, _ := strings.Cut(rest, "/")
	s.f.mu.Lock()
	verb := map[string]string{"POST": "create", "GET": "list", "DELETE": "delete"}[r.Method]
	switch {
	case r.URL.Query().Get("watch") != "":
		verb = "watch"
	case r.Method == http.MethodDelete && name == "":
		verb = "deletecollection"
	case r.Method == http.MethodGet && name != "":
		verb = "get"
	}
	s.f.requests[verb+" "+resource]++
	s.f.mu.Unlock()
	selector, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
	switch verb {
	case "create":
		s.create(w, r, resource)
	case "get":
		s.f.mu.Lock()
		o := s.objects[resource+"/"+name]
		s.f.mu.Unlock()
		if o == nil {
			notFound(w, name)
			return
		}
		answerJSON(w, o.Object)
	case "watch":
		s.watch(w, r)
	case "list":
		answerJSON(
			w,
			map[string]any{"apiVersion": agents.String(), "kind": "List", "items": s.list(resource, selector)},
		)
	case "deletecollection":
		for _, o := range s.list(resource, selector) {
			s.delete(resource, o.GetName(), false)
		}
		answerJSON(w, metav1.Status{Status: metav1.StatusSuccess})
	default:
		var o metav1.DeleteOptions
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			s.f.t.Error(err)
		}
		first := o.PropagationPolicy != nil && *o.PropagationPolicy == metav1.DeletePropagationForeground
		if !s.delete(resource, name, first) {
			notFound(w, name)
			return
		}
		answerJSON(w, metav1.Status{Status: metav1.StatusSuccess})
	}
}

func (s *sandboxes) list(resource string, selector labels.Selector) (found []*unstructured.Unstructured) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	for key, o := range s.objects {
		if strings.HasPrefix(key, resource+"/") && selector.Matches(labels.Set(o.GetLabels())) {
			found = append(found, o)
		}
	}
	return found
}

func (s *sandboxes) create(w http.ResponseWriter, r *http.Request, resource string) {
	o := &unstructured.Unstructured{}
	if err := json.NewDecoder(r.Body).Decode(&o.Object); err != nil {
		s.f.t.Error(err)
	}
	key := resource + "/" + o.GetName()
	s.f.mu.Lock()
	if s.objects[key] != nil {
		s.f.mu.Unlock()
		fail(w, &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists})
		return
	}
	s.objects[key] = o
	if resource == "sandboxtemplates" {
		s.policy, _, _ = unstructured.NestedFieldNoCopy(o.Object, "spec", "networkPolicy")
	}
	asleep := s.asleep
	s.f.mu.Unlock()
	answerJSON(w, o.Object)
	switch {
	case asleep:
	case resource == "sandboxwarmpools":
		s.fill(o.GetName())
	case resource == "sandboxclaims" && s.label != nil:
		go s.adopt(o)
	case resource == "sandboxclaims":
		s.adopt(o)
	}
}

// watch tells of one claim: as it is, and when it names its pod.
func (s *sandboxes) watch(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	tell := func(kind string) {
		s.f.mu.Lock()
		o := s.objects["sandboxclaims/"+name]
		text, err := json.Marshal(map[string]any{"type": kind, "object": o})
		s.f.mu.Unlock()
		if err != nil || o == nil {
			return
		}
		_, _ = w.Write(append(text, '\n'))
		w.(http.Flusher).Flush()
	}
	s.f.mu.Lock()
	named := s.named(name)
	s.f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	tell("ADDED")
	select {
	case <-named:
		tell("MODIFIED")
	case <-r.Context().Done():
	}
}

// named returns what is closed once a claim names its pod; f.mu is held.
func (s *sandboxes) named(claim string) chan struct{} {
	if s.adopted[claim] == nil {
		s.adopted[claim] = make(chan struct{})
	}
	return s.adopted[claim]
}

// fill makes the pods that a pool lacks.
func (s *sandboxes) fill(pool string) {
	for {
		s.f.mu.Lock()
		o := s.objects["sandboxwarmpools/"+pool]
		var want int64
		if s.there("sandboxwarmpools/" + pool) {
			want, _, _ = unstructured.NestedInt64(o.Object, "spec", "replicas")
			if f, ok, _ := unstructured.NestedFloat64(o.Object, "spec", "replicas"); ok {
				want = int64(f)
			}
		}
		for name, of := range s.of {
			if of == "pool/"+pool && s.f.pods[name] != nil {
				want--
			}
		}
		s.made++
		name := fmt.Sprintf("%s-%d", pool, s.made)
		if want > 0 {
			s.of[name] = "pool/" + pool
		}
		s.f.mu.Unlock()
		if want <= 0 {
			return
		}
		s.pod(name, pool, nil)
	}
}

// pod makes a pod of a pool's template.
func (s *sandboxes) pod(name, pool string, more map[string]string) {
	s.f.mu.Lock()
	template := s.objects["sandboxtemplates/"+pool]
	s.f.mu.Unlock()
	if template == nil {
		return
	}
	p := &corev1.Pod{}
	made, _, _ := unstructured.NestedMap(template.Object, "spec", "podTemplate")
	if err := apiruntime.DefaultUnstructuredConverter.FromUnstructured(made, p); err != nil {
		s.f.t.Error(err)
	}
	p.Name = name
	for k, v := range more {
		p.Labels[k] = v
	}
	s.f.start(s.f.admit(p))
}

// adopt gives a claim a pod.
func (s *sandboxes) adopt(claim *unstructured.Unstructured) {
	pool, _, _ := unstructured.NestedString(claim.Object, "spec", "warmPoolRef", "name")
	more, _, _ := unstructured.NestedStringMap(claim.Object, "spec", "additionalPodMetadata", "labels")
	for k := range more {
		if !strings.HasPrefix(k, "sandbox.users.io/") {
			s.f.t.Errorf("agent-sandbox lets no claim give a pod the label %s", k)
		}
	}
	s.f.mu.Lock()
	if !s.there("sandboxclaims/" + claim.GetName()) {
		s.f.mu.Unlock()
		return
	}
	adopted := ""
	for name, of := range s.of {
		if p := s.f.pods[name]; of == "pool/"+pool && p != nil &&
			(adopted == "" || p.Status.Phase == corev1.PodRunning) {
			adopted = name
		}
	}
	s.of[cmp.Or(adopted, claim.GetName())] = "claim/" + claim.GetName()
	if adopted != "" {
		name := s.names(adopted)
		if s.annotates {
			claim.SetAnnotations(map[string]string{"agents.x-k8s.io/sandbox-name": name})
		} else {
			claim.Object["status"] = map[string]any{"sandbox": map[string]any{"name": name}}
		}
		close(s.named(claim.GetName()))
	}
	s.f.mu.Unlock()
	if adopted == "" {
		s.pod(claim.GetName(), pool, more)
		return
	}
	if s.label != nil {
		s.label(adopted)
	}
	s.f.change(adopted, func(p *corev1.Pod) {
		for k, v := range more {
			p.Labels[k] = v
		}
	})
	s.fill(pool)
}

// delete deletes an object and its pods, as the cluster's garbage collector does; with first the
// object is there until its pods are gone.
func (s *sandboxes) delete(resource, name string, first bool) bool {
	owner := map[string]string{"sandboxclaims": "claim/", "sandboxwarmpools": "pool/"}[resource] + name
	key := resource + "/" + name
	var pods []string
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.objects[key] == nil {
		return false
	}
	if first {
		s.ending[key] = true
	} else {
		delete(s.objects, key)
	}
	for pod, of := range s.of {
		if of == owner {
			pods = append(pods, pod)
		}
	}
	go func() {
		for _, pod := range pods {
			s.f.finish(pod)
		}
		if !first {
			return
		}
		s.f.mu.Lock()
		defer s.f.mu.Unlock()
		delete(s.objects, key)
		delete(s.ending, key)
	}()
	return true
}

// there reports whether an object is there and not being deleted; f.mu is held.
func (s *sandboxes) there(key string) bool { return s.objects[key] != nil && !s.ending[key] }

// gone makes a pod again that was deleted and not its claim.
func (s *sandboxes) gone(p *corev1.Pod) {
	s.f.mu.Lock()
	of, pool := s.of[p.Name], ""
	if claim, is := strings.CutPrefix(of, "claim/"); is && s.there("sandboxclaims/"+claim) {
		pool, _, _ = unstructured.NestedString(
			s.objects["sandboxclaims/"+claim].Object,
			"spec",
			"warmPoolRef",
			"name",
		)
	}
	s.f.mu.Unlock()
	if pool != "" {
		s.pod(p.Name, pool, p.Labels)
	}
}
