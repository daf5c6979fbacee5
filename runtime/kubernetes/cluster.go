//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	client "k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// cluster is the API server of one, and a namespace of it.
type cluster struct {
	d         *Driver
	cli       client.Interface
	direct    client.Interface // whose requests don't queue behind cli's
	cfg       *rest.Config
	namespace string
	facts     runtime.Facts
	ownUsers  bool // the server knows of user namespaces
}

// oldest is the minor version of Kubernetes 1 that pods need at least: its API server speaks the
// last version of the streaming protocol, which knows the end of standard input.
const oldest = 30

// ask fills in the facts.
func (c *cluster) ask(ctx context.Context) error {
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
func (c *cluster) version(ctx context.Context) (version.Info, error) {
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
func (c *cluster) runtimeClass(ctx context.Context) error {
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
func (c *cluster) rights(ctx context.Context) error {
	missing, err := c.missing(ctx, needed)
	if len(missing) > 0 {
		return c.d.Unavailable(c.cfg.Host, fmt.Errorf("this account may not do in namespace %s: %s", c.namespace,
			strings.Join(missing, ", ")), grant)
	}
	return err
}

// missing asks the API server which of the rights aren't granted.
func (c *cluster) missing(ctx context.Context, rights []authorizationv1.ResourceAttributes,
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
func (c *cluster) Facts() runtime.Facts {
	f := c.facts
	f.OwnUsers = f.OwnKernel || c.d.ownUsersWork.Load() && !c.d.sharedUsers.Load()
	if !f.OwnKernel && c.d.sharedUsers.Load() {
		f.Lacks = append(f.Lacks[:len(f.Lacks):len(f.Lacks)], "its nodes refuse pods a user namespace of their "+
			"own, so only the guest's watch and the podPidsLimit of a node's kubelet stop a fork bomb")
	}
	return f
}

// Home implements engine.Client.
func (c *cluster) Home() string { return c.facts.Endpoint }

// There implements engine.Client.
func (c *cluster) There() bool { return true }

// Ping implements engine.Client. A server that no longer knows the account counts as gone, so that
// the next connection reads the kubeconfig again.
func (c *cluster) Ping(ctx context.Context) error {
	_, err := c.version(ctx)
	var status apierrors.APIStatus
	if errors.As(err, &status) && !apierrors.IsUnauthorized(err) { // if only that it has too much to do
		return nil
	}
	return err
}

// leases returns what leases are read and written by.
func (c *cluster) leases() coordination.LeaseInterface {
	return c.direct.CoordinationV1().Leases(c.namespace)
}
