//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Refusal is what a cluster didn't do, or undid, and what to do next.
type Refusal struct {
	Err  error
	Next string
}

func (e *Refusal) Error() string { return e.Err.Error() }

func (e *Refusal) Unwrap() error { return e.Err }

// Hint names the next step for a person.
func (e *Refusal) Hint() string { return e.Next }

// cannot finds the verb and the resource that an account lacks in the words of the API server.
var cannot = regexp.MustCompile(`cannot (\w+) resource "([^"]+)"`)

// explain words what the API server refused.
func (c *cluster) explain(err error) error {
	text := ""
	if err != nil {
		text = runtime.OneLine(err.Error())
	}
	refuse := func(why, next string) error {
		return &Refusal{Err: fmt.Errorf("%s: %w", why, errors.New(text)), Next: next}
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsTooManyRequests(err):
		return refuse("the API server has too much to do and takes no more requests",
			"run the call again in a moment; lower MCP_BRIDGE_MAX_CONCURRENT, or give the bridge a FlowSchema of "+
				"its own")
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		return refuse("the quota of namespace "+c.namespace+" is used up",
			"raise it (kubectl describe quota), or lower MCP_BRIDGE_MEMORY, MCP_BRIDGE_CPUS or MCP_BRIDGE_STANDBY")
	case apierrors.IsForbidden(err) && strings.Contains(text, "violates PodSecurity"):
		return refuse("the namespace "+c.namespace+" refuses such pods",
			"the pods keep the standard \"restricted\": compare the namespace's labels with packaging/kubernetes")
	case apierrors.IsForbidden(err) && strings.Contains(text, "RuntimeClass"):
		return refuse("the cluster has no such RuntimeClass",
			"set MCP_BRIDGE_OCI_RUNTIME to one of: kubectl get runtimeclass")
	case apierrors.IsForbidden(err):
		why := "the cluster forbids it"
		if m := cannot.FindStringSubmatch(text); m != nil {
			why = fmt.Sprintf("this account may not %s %s in namespace %s", m[1], m[2], c.namespace)
		}
		return refuse(why, grant)
	case apierrors.IsUnauthorized(err):
		return refuse("the cluster doesn't know this account any more", "log in again, as with: kubectl get pods")
	case apierrors.IsNotFound(err) && strings.Contains(text, "namespaces"):
		return refuse("there is no namespace "+c.namespace,
			"make it (kubectl create namespace "+c.namespace+"), or name another: "+
				"MCP_BRIDGE_RUNTIME=kubernetes:CONTEXT/NAMESPACE")
	case apierrors.IsInvalid(err) && strings.Contains(text, "image"):
		return refuse("the cluster doesn't take the image's name",
			"set MCP_BRIDGE_IMAGE to a name such as python:3.12-slim")
	case apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err),
		apierrors.IsInternalError(err):
		return refuse("the API server can't answer now", "run the call again; if that fails: kubectl cluster-info")
	}
	return err
}
