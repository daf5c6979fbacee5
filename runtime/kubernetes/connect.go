//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	client "k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// connection is one namespace of one cluster.
type connection struct {
	d         *Driver
	cli       client.Interface
	direct    client.Interface // whose requests don't queue behind cli's
	cfg       *rest.Config
	namespace string
	facts     runtime.Facts
	ownUsers  bool // the server knows of user namespaces
	pods      *pods
	claims    *claims // nil for a cluster without agent-sandbox

	images *nodeImages

	mu      sync.Mutex
	streams map[string]*stream // attached, and not started yet; by pod
}

// Rates of requests to the API server: some for each pod that starts. A server that has less to
// give answers 429 and says when to come back, which client-go does. Pings and the renewals of
// leases, one in ten seconds, don't wait for their turn: late ones would cost a connection and its
// pods.
const (
	requestsASecond = 50
	requestsAtOnce  = 100
)

// oldest is the minor version of Kubernetes 1 that pods need at least: its API server speaks the
// last version of the streaming protocol, which knows the end of standard input.
const oldest = 30

// look finds the cluster and what may be done there.
func (d *Driver) look(ctx context.Context) (*connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: d.cfg.Context})
	cfg, err := config.ClientConfig()
	if err != nil {
		return nil, d.Unavailable("", fmt.Errorf("its kubeconfig can't be used: %w", err),
			"check it with: kubectl config get-contexts; name one with MCP_BRIDGE_RUNTIME=kubernetes:CONTEXT")
	}
	namespace := d.cfg.Namespace
	if namespace == "" {
		if namespace, _, err = config.Namespace(); err != nil {
			return nil, d.Unavailable(cfg.Host, err, "name one: MCP_BRIDGE_RUNTIME=kubernetes:CONTEXT/NAMESPACE")
		}
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst, cfg.UserAgent = requestsASecond, requestsAtOnce, "mcp-bridge"
	cli, err := client.NewForConfig(cfg)
	if err != nil {
		return nil, d.Unavailable(cfg.Host, err, "check the cluster's entry in the kubeconfig")
	}
	unlimited := rest.CopyConfig(cfg)
	unlimited.QPS = -1
	direct, err := client.NewForConfig(unlimited)
	if err != nil {
		return nil, d.Unavailable(cfg.Host, err, "check the cluster's entry in the kubeconfig")
	}
	c := &connection{
		d:         d,
		cli:       cli,
		direct:    direct,
		cfg:       cfg,
		namespace: namespace,
		streams:   map[string]*stream{},
	}
	c.images = &nodeImages{c: c, known: map[string]runtime.Image{}}
	if err := c.ask(ctx); err != nil {
		return nil, err
	}
	if c.claims, err = c.findClaims(ctx); err != nil {
		return nil, err
	}
	c.pods = watchPods(c)
	d.leases.start.Do(func() { d.Go(d.leases.keep) })
	return c, nil
}

// ask fills in the facts.
func (c *connection) ask(ctx context.Context) error {
	v, err := c.version(ctx)
	if err != nil {
		next := "check that the cluster is up: kubectl cluster-info"
		if apierrors.IsUnauthorized(err) {
			next = "log in to the cluster again, as with: kubectl get pods"
		}
		return c.d.Unavailable(c.cfg.Host, err, next)
	}
	minor, _ := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if v.Major != "1" || minor < oldest {
		return c.d.Unavailable(c.cfg.Host, fmt.Errorf("it is Kubernetes %s, and 1.%d or later is needed",
			v.GitVersion, oldest), "update the cluster, or use another one")
	}
	c.ownUsers = minor >= 33 && !c.d.sharedUsers.Load()
	c.facts = runtime.Facts{
		Engine: "kubernetes", Version: v.GitVersion, APIVersion: "v1", Endpoint: c.cfg.Host + "/" + c.namespace,
		Remote: true, Cluster: true, CgroupVersion: 2, Seccomp: "engine",
		Enforces: runtime.Enforced{Memory: true, CPUs: true},
		Lacks: []string{
			"a pod has a network interface, whatever its cluster does with it: the guest's own filter denies code " +
				"internet sockets, and the NetworkPolicy of packaging/kubernetes denies the rest where the cluster's " +
				"network keeps policies",
			"a pod's directories are not mounted noexec, nosuid and nodev: no new privileges and no capabilities hold",
			"the node keeps what a pod prints in its log until the pod is deleted: who may read logs or nodes reads " +
				"what code prints",
		},
	}
	if h := c.d.cfg.Hardening.Seccomp; nodesProfile(h) != "" {
		c.facts.Seccomp = h.Name
	} else if h != nil {
		c.facts.Lacks = append(c.facts.Lacks, fmt.Sprintf("a cluster takes no seccomp profile over its API, "+
			"so %q is "+
			"not set: the node's default and the guest's own filter hold; MCP_BRIDGE_SECCOMP=localhost/NAME names a "+
			"file that the nodes have", h.Name))
	}
	if err := c.runtimeClass(ctx); err != nil {
		return err
	}
	return c.rights(ctx)
}

// version asks the API server what it is.
func (c *connection) version(ctx context.Context) (version.Info, error) {
	var v version.Info
	b, err := c.direct.CoreV1().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("what answers is no API server of Kubernetes: %w", err)
	}
	return v, nil
}

// runtimeClass looks for the one that was asked for. Where it may not be looked at, the API server
// refuses a pod of one that is missing.
func (c *connection) runtimeClass(ctx context.Context) error {
	name := c.d.cfg.Hardening.OCIRuntime
	if name == "" {
		return nil
	}
	c.facts.OCIRuntime = name
	class, err := c.cli.NodeV1().RuntimeClasses().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return c.d.Unavailable(c.cfg.Host, fmt.Errorf("it has no RuntimeClass %q", name),
			"set MCP_BRIDGE_OCI_RUNTIME to one of: kubectl get runtimeclass")
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return c.d.Unavailable(c.cfg.Host, err, "check that the cluster is up: kubectl cluster-info")
	}
	c.facts.StartedBy(class.Handler)
	if c.facts.OwnKernel { // no profile of the node's holds in it
		c.facts.Seccomp = ""
	}
	return nil
}

// needed are the rights in the namespace that a driver uses, and no others:
// packaging/kubernetes grants the same (TestRights).
var needed = []authorizationv1.ResourceAttributes{
	{Verb: "create", Resource: "pods"}, {Verb: "get", Resource: "pods"}, {Verb: "list", Resource: "pods"},
	{Verb: "watch", Resource: "pods"}, {Verb: "delete", Resource: "pods"},
	{Verb: "create", Resource: "pods", Subresource: "attach"},
	{Verb: "get", Resource: "pods", Subresource: "attach"}, // which a WebSocket is to some servers
	{Group: "coordination.k8s.io", Verb: "create", Resource: "leases"},
	{Group: "coordination.k8s.io", Verb: "list", Resource: "leases"},
	{Group: "coordination.k8s.io", Verb: "update", Resource: "leases"},
	{Group: "coordination.k8s.io", Verb: "delete", Resource: "leases"},
}

// rights returns an error where one of needed is missing.
func (c *connection) rights(ctx context.Context) error {
	missing, err := c.missing(ctx, needed)
	if len(missing) > 0 {
		return c.d.Unavailable(c.cfg.Host, fmt.Errorf("this account may not do in namespace %s: %s", c.namespace,
			strings.Join(missing, ", ")), grant)
	}
	return err
}

// missing asks the API server which of the rights aren't granted.
func (c *connection) missing(ctx context.Context, rights []authorizationv1.ResourceAttributes,
) (missing []string, err error) {
	for _, r := range rights {
		r.Namespace = c.namespace
		review, err := c.cli.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &r},
			}, metav1.CreateOptions{})
		switch {
		case apierrors.IsForbidden(err): // it doesn't tell; the request itself will
			return nil, nil
		case err != nil:
			return nil, c.d.Unavailable(c.cfg.Host, fmt.Errorf("asking what is allowed: %w", err),
				"check that the cluster is up: kubectl cluster-info")
		case !review.Status.Allowed:
			missing = append(missing, r.Verb+" "+strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/"))
		}
	}
	return missing, nil
}

// grant is what to do where a right is missing.
const grant = "grant it with the Role of packaging/kubernetes: kubectl apply -k packaging/kubernetes"

// Facts implements engine.Client. A user namespace counts once a pod has had one: until then the
// guest must not have the kernel count processes by user.
func (c *connection) Facts() runtime.Facts {
	f := c.facts
	f.OwnUsers = f.OwnKernel || c.d.ownUsersWork.Load() && !c.d.sharedUsers.Load()
	if !f.OwnKernel && c.d.sharedUsers.Load() {
		f.Lacks = append(f.Lacks[:len(f.Lacks):len(f.Lacks)], "its nodes refuse pods a user namespace of their "+
			"own, so only the guest's watch and the podPidsLimit of a node's kubelet stop a fork bomb")
	}
	return f
}

// Home implements engine.Client.
func (c *connection) Home() string { return c.facts.Endpoint }

// There implements engine.Client.
func (c *connection) There() bool { return true }

// Ping implements engine.Client. A server that no longer knows the account counts as gone, so that
// the next connection reads the kubeconfig again.
func (c *connection) Ping(ctx context.Context) error {
	_, err := c.version(ctx)
	var status apierrors.APIStatus
	if errors.As(err, &status) && !apierrors.IsUnauthorized(err) { // if only that it has too much to do
		return nil
	}
	return err
}

// Close implements engine.Client. Runs that are under way hear of their pods until they have ended.
func (c *connection) Close() {
	c.pods.drain(c.d.Life())
	c.pods.end()
}

// Images implements engine.Client.
func (c *connection) Images() engine.Images { return c.images }

// leases returns what leases are read and written by.
func (c *connection) leases() coordination.LeaseInterface {
	return c.direct.CoordinationV1().Leases(c.namespace)
}
