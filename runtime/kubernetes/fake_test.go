//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// fake is an API server, and a node whose containers are processes of this machine: enough of both
// for a driver to be sent through its contract, and for each refusal of theirs to be made. It keeps
// real protocols: watches, resource versions, preconditions, and streams over WebSocket.
type fake struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	version  int
	pods     map[string]*corev1.Pod
	deleted  []*corev1.Pod // as they were last
	leases   map[string]*coordinationv1.Lease
	guests   map[string]*guest
	attached map[string]int // how often, by pod
	watchers map[*watcher]bool
	requests map[string]int // by verb and resource, such as "create pods"

	plain   bool                                           // it takes no WebSockets
	service string                                         // what pods are told to be the API server
	minor   string                                         // of the server; 36 unless set
	classes map[string]string                              // RuntimeClasses and their handlers
	denied  map[string]bool                                // verbs and resources
	refuse  func(verb, resource string) *metav1.Status     // a request that was understood
	begin   func(p *corev1.Pod) (status *corev1.PodStatus) // in place of a start; nil starts it
	events  int                                            // watches that were begun
	agents  *sandboxes                                     // nil for a cluster without agent-sandbox
	down    chan struct{}                                  // closed while it can't be reached
	expired bool                                           // no token is known
	killed  map[string]bool                                // contexts of dead bridges
	// simulate is what a container does in place of its command; nil runs that.
	simulate func(in io.Reader, out io.Writer)
}

type watcher struct {
	selector labels.Selector
	events   chan []byte
	end      chan struct{}
}

const testNamespace = "code"

// lostNode is in the names of images whose pods' node is away: it ends nothing.
const lostNode = "lost-node"

func newFake(t testing.TB) *fake {
	f := &fake{t: t, pods: map[string]*corev1.Pod{}, leases: map[string]*coordinationv1.Lease{},
		guests: map[string]*guest{}, watchers: map[*watcher]bool{}, requests: map[string]int{}, minor: "36",
		service: "127.0.0.1:1", killed: map[string]bool{}, attached: map[string]int{},
		classes: map[string]string{}, denied: map[string]bool{}, down: make(chan struct{})}
	mux := http.NewServeMux()
	const core, lease = "/api/v1/namespaces/{ns}/pods", "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, map[string]string{"major": "1", "minor": f.minor, "gitVersion": "v1." + f.minor + ".0"})
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", f.review)
	ofAgents := func(w http.ResponseWriter, r *http.Request) { f.agents.serve(w, r) }
	mux.HandleFunc("/apis/"+agents.String()+"/", ofAgents)
	mux.HandleFunc("GET /apis/"+agents.String(), ofAgents)
	mux.HandleFunc("GET /apis/node.k8s.io/v1/runtimeclasses/{name}", f.class)
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request){
		"POST " + core: f.createPod, "GET " + core: f.listPods, "GET " + core + "/{name}": f.getPod,
		"DELETE " + core + "/{name}": f.deletePod, "GET " + core + "/{name}/attach": f.attach,
		"POST " + core + "/{name}/attach": f.attach,
		"POST " + lease:                   f.createLease, "GET " + lease: f.listLeases,
		"PUT " + lease + "/{name}":    f.updateLease,
		"DELETE " + lease + "/{name}": f.deleteLease,
	} {
		mux.HandleFunc(pattern, f.counted(pattern, h))
	}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-f.downs():
			panic(http.ErrAbortHandler) // which closes the connection
		default:
		}
		f.mu.Lock()
		whose, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/as/"), "/")
		r.URL.Path = "/" + path
		expired, dead := f.expired, f.killed[whose]
		f.mu.Unlock()
		if dead {
			panic(http.ErrAbortHandler)
		}
		if expired {
			fail(w, &metav1.Status{Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized})
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		f.mu.Lock()
		for w := range f.watchers {
			close(w.end)
		}
		guests := slices.Collect(maps.Values(f.guests))
		f.mu.Unlock()
		for _, g := range guests {
			g.kill()
			<-g.gone
		}
		f.server.Close()
	})
	return f
}

// lose makes the API server unreachable: its streams break, and requests get no answer. The node
// goes on, and finds the inputs of its containers at their end.
func (f *fake) lose() {
	close(f.downs())
	f.server.CloseClientConnections()
}

// recover makes it reachable again.
func (f *fake) recover() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = make(chan struct{})
}

func (f *fake) downs() chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down
}

// counted counts a request, and refuses it where the test says so.
func (f *fake) counted(pattern string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		verb := map[string]string{"POST": "create", "PUT": "update", "DELETE": "delete", "GET": "list"}[r.Method]
		resource := "pods"
		switch {
		case strings.HasSuffix(pattern, "/attach"):
			verb, resource = "create", "pods/attach"
		case r.URL.Query().Get("watch") != "":
			verb = "watch"
		case r.Method == http.MethodGet && r.PathValue("name") != "":
			verb = "get"
		}
		if strings.Contains(pattern, "leases") {
			resource = "leases"
		}
		if ns := r.PathValue("ns"); ns != testNamespace {
			f.t.Errorf("%s %s in namespace %s, which is another's", verb, resource, ns)
		}
		f.mu.Lock()
		if resource == "pods/attach" {
			f.attached[r.PathValue("name")]++
		}
		f.requests[verb+" "+resource]++
		refuse, denied := f.refuse, f.denied[verb+" "+resource]
		f.mu.Unlock()
		if refuse != nil {
			if s := refuse(verb, resource); s != nil {
				fail(w, s)
				return
			}
		}
		if denied {
			fail(w, forbidden(fmt.Sprintf(`%s is forbidden: User "bridge" cannot %s resource %q in API group ""`+
				` in the namespace %q`, resource, verb, resource, testNamespace)))
			return
		}
		h(w, r)
	}
}

// decode reads an object as clients send it, which is protobuf for most.
func decode(t testing.TB, body io.Reader) apiruntime.Object {
	b, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(b, nil, nil)
	if err != nil {
		t.Error(err)
	}
	return o
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, s *metav1.Status) {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	s.Status = metav1.StatusFailure
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s)
}

func forbidden(message string) *metav1.Status {
	return &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message}
}

func notFound(w http.ResponseWriter, name string) {
	fail(w, &metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("%q not found", name)})
}

func (f *fake) review(w http.ResponseWriter, r *http.Request) {
	review := decode(f.t, r.Body).(*authorizationv1.SelfSubjectAccessReview)
	a := review.Spec.ResourceAttributes
	f.mu.Lock()
	review.Status.Allowed = !f.denied[a.Verb+" "+strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/")]
	f.mu.Unlock()
	answerJSON(w, review)
}

func (f *fake) class(w http.ResponseWriter, r *http.Request) {
	handler, ok := f.classes[r.PathValue("name")]
	if !ok {
		notFound(w, r.PathValue("name"))
		return
	}
	answerJSON(w, nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: r.PathValue("name")},
		Handler: handler})
}

// stamp gives an object the next resource version; f.mu is held.
func (f *fake) stamp(o *metav1.ObjectMeta) {
	f.version++
	o.ResourceVersion = strconv.Itoa(f.version)
}

// tell sends an event of a pod to those who watch it; f.mu is held.
func (f *fake) tell(kind string, p *corev1.Pod) {
	p.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	b, err := json.Marshal(map[string]any{"type": kind, "object": p})
	if err != nil {
		f.t.Error(err)
	}
	for w := range f.watchers {
		if w.selector.Matches(labels.Set(p.Labels)) {
			select {
			case w.events <- b:
			default:
				f.t.Error("a watcher has fallen 10,000 events behind")
			}
		}
	}
}

// change changes a pod that is there, and says so.
func (f *fake) change(name string, change func(*corev1.Pod)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.pods[name]; p != nil {
		change(p)
		f.stamp(&p.ObjectMeta)
		f.tell("MODIFIED", p)
	}
}

// remove takes a pod from the API.
func (f *fake) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.pods[name]; p != nil {
		delete(f.pods, name)
		f.stamp(&p.ObjectMeta)
		f.tell("DELETED", p)
		f.deleted = append(f.deleted, p)
	}
}

func (f *fake) createPod(w http.ResponseWriter, r *http.Request) {
	created := f.admit(decode(f.t, r.Body).(*corev1.Pod))
	f.start(created)
	answerJSON(w, created)
}

// admit keeps a new pod, and returns it as it is then.
func (f *fake) admit(p *corev1.Pod) *corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.CreationTimestamp = metav1.Now()
	p.Spec.NodeName = "here"
	p.Status.Phase = corev1.PodPending
	f.stamp(&p.ObjectMeta)
	f.pods[p.Name] = p
	f.tell("ADDED", p)
	return p.DeepCopy()
}

func (f *fake) listPods(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	selector, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		f.t.Error(err)
	}
	switch {
	case q.Get("sendInitialEvents") != "": // as a server does that can't list by a watch
		fail(w, &metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid})
		return
	case q.Get("watch") != "":
		f.watch(w, r, selector, q.Get("resourceVersion"))
		return
	}
	f.mu.Lock()
	list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.version)}}
	for _, p := range f.pods {
		if selector.Matches(labels.Set(p.Labels)) {
			list.Items = append(list.Items, *p.DeepCopy())
		}
	}
	f.mu.Unlock()
	answerJSON(w, list)
}

// watch sends what happens from now on, after a list whose version is since. What happened between
// the two is sent again as an event, which watchers bear.
func (f *fake) watch(w http.ResponseWriter, r *http.Request, selector labels.Selector, since string) {
	watch := &watcher{selector: selector, events: make(chan []byte, 10_000), end: make(chan struct{})}
	f.mu.Lock()
	f.events++
	f.watchers[watch] = true
	from, _ := strconv.Atoi(since)
	missed := func(kind string, p *corev1.Pod) {
		if v, _ := strconv.Atoi(p.ResourceVersion); v > from && selector.Matches(labels.Set(p.Labels)) {
			b, _ := json.Marshal(map[string]any{"type": kind, "object": p})
			watch.events <- b
		}
	}
	for _, p := range f.pods {
		missed("MODIFIED", p)
	}
	for _, p := range f.deleted {
		missed("DELETED", p)
	}
	f.mu.Unlock()
	defer func() { f.mu.Lock(); delete(f.watchers, watch); f.mu.Unlock() }()
	w.Header().Set("Content-Type", "application/json")
	flush := w.(http.Flusher).Flush
	flush()
	for {
		select {
		case b := <-watch.events:
			_, _ = w.Write(append(b, '\n'))
			flush()
		case <-r.Context().Done():
			return
		case <-watch.end:
			return
		}
	}
}

func (f *fake) getPod(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	p := f.pods[r.PathValue("name")].DeepCopy()
	f.mu.Unlock()
	if p == nil {
		notFound(w, r.PathValue("name"))
		return
	}
	answerJSON(w, p)
}

// deletePod ends the container first where there is a grace, as a kubelet does.
func (f *fake) deletePod(w http.ResponseWriter, r *http.Request) {
	o := decode(f.t, r.Body).(*metav1.DeleteOptions)
	name := r.PathValue("name")
	f.mu.Lock()
	p := f.pods[name].DeepCopy()
	f.mu.Unlock()
	if p == nil {
		notFound(w, name)
		return
	}
	if p.DeletionTimestamp == nil {
		f.change(name, func(p *corev1.Pod) { now := metav1.NewTime(time.Now()); p.DeletionTimestamp = &now })
	}
	if o.GracePeriodSeconds != nil && *o.GracePeriodSeconds == 0 {
		f.finish(name)
	} else if !strings.Contains(p.Spec.Containers[0].Image, lostNode) {
		go f.finish(name)
	}
	answerJSON(w, p)
}

// finish ends the container of a pod, and takes the pod from the API.
func (f *fake) finish(name string) {
	f.mu.Lock()
	p, g := f.pods[name].DeepCopy(), f.guests[name]
	f.mu.Unlock()
	if g != nil {
		g.kill()
		<-g.gone
	}
	f.remove(name)
	if f.agents != nil && p != nil {
		f.agents.gone(p)
	}
}

// count returns how many requests of a kind there were, and how many pods there are.
func (f *fake) count(request string) (requests, pods int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[request], len(f.pods)
}
