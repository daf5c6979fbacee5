//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// status returns the container's; the zero value for none yet.
func status(p *corev1.Pod) corev1.ContainerStatus {
	if p == nil || len(p.Status.ContainerStatuses) == 0 {
		return corev1.ContainerStatus{}
	}
	return p.Status.ContainerStatuses[0]
}

var errGone = errors.New("the pod was deleted by somebody else")

// running reports whether a pod's container runs, or why it never will.
func running(p *corev1.Pod, gone bool) (bool, error) {
	s := status(p)
	switch {
	case s.State.Running != nil:
		return true, nil
	case s.State.Terminated != nil, p != nil && p.Status.Phase == corev1.PodFailed:
		_, err := ended(p, gone)
		return false, err
	case gone:
		return false, errGone
	case s.State.Waiting != nil:
		return false, waits(p.Spec.Containers[0].Image, s.State.Waiting)
	}
	return false, nil
}

// imageReasons are those that a kubelet gives for a container that has no image.
var imageReasons = []string{
	"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
	"RegistryUnavailable", "SignatureValidationFailed",
}

// startReasons are those for one that can't be made or started.
var startReasons = []string{
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError",
	"ContainerCannotRun",
}

// waits returns why a container that waits will never run; nil where it may.
func waits(image string, w *corev1.ContainerStateWaiting) error {
	switch {
	case slices.Contains(imageReasons, w.Reason):
		return imageError(image, w.Reason, w.Message)
	case slices.Contains(startReasons, w.Reason):
		return notStarted(w.Reason, w.Message)
	}
	return nil
}

func imageError(image, reason, message string) error {
	text := runtime.OneLine(reason + ": " + message)
	if reason == "ErrImageNeverPull" {
		return &runtime.ImageError{Ref: image, Err: errors.New("the node that a pod was given hasn't got it"),
			Next: "load it onto each node, as with: kind load docker-image; or name one of a registry in " +
				"MCP_BRIDGE_IMAGE"}
	}
	return runtime.PullError(image, errors.New(text))
}

func notStarted(reason, message string) error {
	next := "check that MCP_BRIDGE_IMAGE has sh, env and python3; what the node says: " +
		"kubectl describe pods -l " +
		labelApp + "=" + app
	if strings.Contains(message, "seccomp") {
		next = "put the profile that MCP_BRIDGE_SECCOMP names onto each node, below /var/lib/kubelet/seccomp, or " +
			"unset it"
	}
	return &Refusal{Err: fmt.Errorf("the node could not start the container: %s: %s", reason,
		runtime.OneLine(message)), Next: next}
}

// programOf returns the name of what a pod was made to run.
func programOf(p *corev1.Pod) string {
	for _, ctr := range p.Spec.Containers {
		if ctr.Name == container && len(ctr.Args) > 0 {
			return ctr.Args[0]
		}
	}
	return "its program"
}

// ended reports that a container has ended before it has answered, and why.
func ended(p *corev1.Pod, gone bool) (bool, error) {
	t := status(p).State.Terminated
	switch {
	case t != nil && slices.Contains(startReasons, t.Reason):
		return true, notStarted(t.Reason, t.Message)
	case t != nil && t.ExitCode == gateNoProgram:
		return true, fmt.Errorf("the image has no %s on its PATH: not found", programOf(p))
	case t != nil && t.ExitCode == gateNoLimits:
		return true, errors.New("its limits could not be set: the node gives containers fewer descriptors " +
			"than that")
	case p != nil && p.Status.Phase == corev1.PodFailed && p.Status.Reason != "":
		return true, failed(p)
	case t != nil:
		return true, fmt.Errorf("it ended with code %d (%s) before it answered: see that %s runs in its image",
			t.ExitCode, t.Reason, programOf(p))
	case gone:
		return true, errGone
	}
	return false, nil
}

// ownEviction is what a kubelet says of a pod that has used more than its own limits.
var ownEviction = regexp.MustCompile(`exceeds the (total )?limit|exceeded its local ephemeral storage limit`)

// evicted returns what an eviction means that the pod itself has caused; nothing for the node's.
func evicted(message string) [2]string {
	if ownEviction.MatchString(message) {
		return [2]string{"the pod used more of its node's disk or memory than it may, and was evicted",
			"print less: the log of a pod, of which its output is a part, may have " +
				fmt.Sprint(ephemeral>>20) + " MiB; and keep less in files"}
	}
	return outside["Evicted"]
}

// exitOf returns how a pod's container ended, if it has. What ended it from outside, and is no
// fault of the code, is an error.
func exitOf(p *corev1.Pod) (runtime.Exit, bool, error) {
	if p == nil {
		return runtime.Exit{}, false, nil
	}
	t := status(p).State.Terminated
	if p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil {
		if err := failed(p); err != nil {
			return runtime.Exit{Code: -1}, false, err
		}
	}
	switch {
	case t != nil:
		return runtime.Exit{Code: int(t.ExitCode), OOMKilled: t.Reason == "OOMKilled"}, true, nil
	case p.Status.Phase == corev1.PodFailed: // its time was up
		return runtime.Exit{Code: 128 + 9}, true, nil
	}
	return runtime.Exit{}, false, nil
}

// outside are the reasons of a pod's end that are the cluster's, each with what it means and what
// to do next.
var outside = map[string][2]string{
	"Evicted": {"the node had too little left and evicted the pod",
		"run the call again; give the nodes more memory or disk, or lower MCP_BRIDGE_MEMORY"},
	"Preempted": {"pods of a higher priority took its place",
		"run the call again, or give the pods room of their own"},
	"Preempting": {"pods of a higher priority took its place",
		"run the call again, or give the pods room of their own"},
	"NodeLost":     {"its node was lost", "run the call again; another node takes it"},
	"NodeShutdown": {"its node was shut down", "run the call again; another node takes it"},
	"Shutdown":     {"its node was shut down", "run the call again; another node takes it"},
	"Terminated":   {"its node was shut down", "run the call again; another node takes it"},
	"NodeAffinity": {"its node no longer takes such pods", "run the call again; another node takes it"},
	"PreemptionByScheduler": {"pods of a higher priority took its place",
		"run the call again, or give the pods room of their own"},
	"DeletionByTaintManager": {"its node was taken out of use", "run the call again; another node takes it"},
	"EvictionByEvictionAPI":  {"its node is being drained", "run the call again; another node takes it"},
	"DeletionByPodGC":        {"its node is gone", "run the call again; another node takes it"},
	"TerminationByKubelet":   {"its node ended it", "run the call again; another node takes it"},
}

// failed returns what the cluster ended a pod for; nil where that was its own end or its age.
func failed(p *corev1.Pod) error {
	if p.Status.Reason == "DeadlineExceeded" {
		return nil
	}
	reason, message := p.Status.Reason, p.Status.Message
	if _, known := outside[reason]; !known {
		for _, cond := range p.Status.Conditions {
			if cond.Type == corev1.DisruptionTarget && cond.Status == corev1.ConditionTrue {
				reason, message = cond.Reason, cond.Message
			}
		}
	}
	if reason == "" {
		return nil
	}
	means, known := outside[reason]
	if reason == "Evicted" {
		means = evicted(message)
	}
	if !known {
		means = [2]string{"the cluster ended the pod: " + reason,
			"run the call again; what the cluster says: kubectl " +
				"describe pods -l " + labelApp + "=" + app}
	}
	return &Refusal{Err: errors.New(runtime.OneLine(means[0] + ": " + message)), Next: means[1]}
}

// unready returns how far a pod has come that took too long.
func (w *pods) unready(name string, patience time.Duration) error {
	p, _, _ := w.last(name)
	within := fmt.Sprintf("within %v", patience.Round(time.Second))
	if p == nil {
		return fmt.Errorf("the cluster said nothing of the pod %s", within)
	}
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status != corev1.ConditionTrue {
			return &Refusal{Err: fmt.Errorf("no node took the pod %s: %s", within, runtime.OneLine(cond.Message)),
				Next: "add a node, or lower MCP_BRIDGE_MEMORY, MCP_BRIDGE_CPUS or MCP_BRIDGE_MAX_CONCURRENT"}
		}
	}
	if p.Spec.NodeName == "" {
		return &Refusal{Err: fmt.Errorf("no scheduler gave the pod a node %s", within),
			Next: "check that the cluster is well: kubectl get pods -n kube-system"}
	}
	waiting := status(p).State.Waiting
	doing := "the node has not begun with it"
	if waiting != nil {
		doing = "the node says: " + runtime.OneLine(waiting.Reason+" "+waiting.Message)
	}
	return &Refusal{Err: fmt.Errorf("the pod did not start %s: %s", within, doing),
		Next: "run the call again: the node may still be pulling the image; if that fails: kubectl describe " +
			"pods -l " +
			labelApp + "=" + app}
}
