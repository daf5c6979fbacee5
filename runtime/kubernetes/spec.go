//go:build kubernetes

package kubernetes

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	hostname  = "sandbox" // the same in every pod, so that none learns anything by it
	container = "code"

	// ephemeral bounds what a pod leaves on its node's disk: its log, since its root is read-only and
	// its directories are in memory.
	ephemeral = 128 << 20

	// termination is where the kubelet mounts a file of the node's disk, which anybody can write to,
	// into every container. Below root's home the code can't get at it; where it can, the gate's limit
	// of the size of a file holds.
	termination = "/root/.termination"

	// labelDriver tells the pods of one connection from all others.
	labelDriver = claimable + "io.mcp-bridge.driver"
	labelApp    = "app.kubernetes.io/managed-by"
	app         = "mcp-bridge"

	// startSlack is how much longer a pod may live by the cluster's clock, which counts from before
	// its image is pulled.
	startSlack = 3 * time.Minute
)

// gate runs first in each container, as its arguments are: the program, its limits of descriptors
// and of 512-byte blocks of a file, whether it is held, and the environment and command. A pod
// starts when it is created, and what it prints before a stream is attached is lost. So Start sends
// an empty line, which is answered with one: by the gate, which holds the program until then, or by
// a program that does so itself. The gate also takes away what the image, the cluster and the
// kubelet put into the environment, and sets the limits that a pod's spec has no words for.
const gate = `command -v "$1" >/dev/null 2>&1 || exit 127
ulimit -c 0 && ulimit -n "$2" && ulimit -f "$3" || exit 126
[ "$4" != held ] || { read -r go && echo; } || exit 125
shift 4
exec env -i PATH="$PATH" "$@"`

// Exit codes of the gate.
const (
	gateNoProgram = 127
	gateNoLimits  = 126
)

// podName returns the name of a pod for one of runtime.Owner.NewName.
func podName(name string) string { return strings.ToLower(name) }

// pod writes a Spec in the cluster's words and adds the lock-down, which no Spec can change. The
// items are those of the design's security brief; runtimetest.LockDown sees each from inside.
func (c *connection) pod(name string, s runtime.Spec) *corev1.Pod {
	labels := s.Owner.Labels()
	labels[labelApp], labels[labelDriver] = app, c.pods.id
	uid, gid := ids(s.User)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName(name), Namespace: c.namespace, Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         ptr(int64(math.Ceil((s.MaxAge + startSlack).Seconds()))),
			TerminationGracePeriodSeconds: ptr(int64(1)),
			Hostname:                      hostname,
			NodeSelector:                  map[string]string{corev1.LabelOSStable: "linux"},

			// Nothing of the cluster's: no token, no names of services, no name server.
			AutomountServiceAccountToken: ptr(false),
			EnableServiceLinks:           ptr(false),
			ShareProcessNamespace:        ptr(false), // the guest's walls need it to be the first process
			DNSPolicy:                    corev1.DNSNone,
			DNSConfig:                    &corev1.PodDNSConfig{Nameservers: []string{"127.0.0.1"}},

			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr(true), RunAsUser: &uid, RunAsGroup: &gid,
				SeccompProfile: filter(c.d.cfg.Hardening.Seccomp),
			},
		},
	}
	if c.ownUsers && !c.d.sharedUsers.Load() {
		p.Spec.HostUsers = ptr(false)
	}
	if class := c.d.cfg.Hardening.OCIRuntime; class != "" {
		p.Spec.RuntimeClassName = &class
	}
	ctr := corev1.Container{
		Name: container, Image: s.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"sh", "-c", gate, "gate"}, Args: gated(s), Env: path(s.Env),
		Stdin: true, StdinOnce: true, // when the client is gone the input ends, and the guest with it
		WorkingDir:             "/",
		TerminationMessagePath: termination,
		Resources:              resources(s.Limits),
		SecurityContext: &corev1.SecurityContext{
			Privileged: ptr(false), AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	if runtime.IsLocal(s.Image) {
		ctr.ImagePullPolicy = corev1.PullNever
	}
	for i, t := range append([]runtime.Tmpfs{{Path: "/dev/shm", Size: s.Limits.Shm}}, s.Tmpfs...) {
		name := "memory-" + strconv.Itoa(i)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: amount(t.Size)},
		}})
		ctr.VolumeMounts = append(ctr.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: t.Path})
	}
	p.Spec.Containers = []corev1.Container{ctr}
	return p
}

// nodesProfile returns which of the files that its nodes have is to be the filter of system calls,
// by its path below the kubelet's; empty for none.
func nodesProfile(p *runtime.SeccompProfile) string {
	if p == nil {
		return ""
	}
	name, _ := strings.CutPrefix(p.Name, "localhost/")
	if name == p.Name { // strict, or a file of the bridge's machine
		return ""
	}
	return name
}

// filter returns the profile that a pod names: one of the nodes', or their default.
func filter(p *runtime.SeccompProfile) *corev1.SeccompProfile {
	if name := nodesProfile(p); name != "" {
		return &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &name}
	}
	return &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
}

// gated returns the gate's arguments.
func gated(s runtime.Spec) []string {
	largest := s.Limits.Shm
	for _, t := range s.Tmpfs {
		largest = max(largest, t.Size)
	}
	args := []string{s.Command[0], fmt.Sprint(s.Limits.NoFile), fmt.Sprint((largest + 511) / 512), "held"}
	if s.Answers {
		args[3] = "free"
	}
	return append(append(args, s.Env...), s.Command...)
}

// path returns the PATH of an environment, in which the gate looks for the program.
func path(env []string) []corev1.EnvVar {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			return []corev1.EnvVar{{Name: "PATH", Value: v}}
		}
	}
	return nil
}

// resources are all that is asked for and all that may be used, so that no pod is the first to be
// evicted. Without a limit of processors a pod is promised a tenth of one, and may use all: a limit
// of a tenth would make each run ten times as long.
func resources(l runtime.Limits) corev1.ResourceRequirements {
	limits := corev1.ResourceList{
		corev1.ResourceMemory:           *amount(l.Memory),
		corev1.ResourceEphemeralStorage: *amount(ephemeral),
	}
	requests := maps.Clone(limits)
	if l.CPUs > 0 {
		limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(math.Ceil(l.CPUs*1000)), resource.DecimalSI)
		requests[corev1.ResourceCPU] = limits[corev1.ResourceCPU]
	} else {
		requests[corev1.ResourceCPU] = resource.MustParse("100m")
	}
	return corev1.ResourceRequirements{Limits: limits, Requests: requests}
}

func amount(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }

// ids returns the numbers of a user, which Validate has seen.
func ids(user string) (uid, gid int64) {
	u, g, _ := strings.Cut(user, ":")
	uid, _ = strconv.ParseInt(u, 10, 64)
	gid, _ = strconv.ParseInt(g, 10, 64)
	return uid, gid
}

func ptr[T any](v T) *T { return &v }
