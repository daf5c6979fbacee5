//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

const (
	program     = "../../bin/mcp-bridge-kubernetes"
	bridgeImage = "localhost/mcp-bridge/bridge:1" // test/kubernetes/run makes it
	bridges     = "mcp-bridge"                    // the namespace of the manifests
)

// TestClusterInside: a bridge in a pod of the manifests' Deployment, in a namespace of the standard
// "restricted", finds its cluster by what is in the pod. With its account's rights alone it answers
// calls over HTTP, in an environment that was pushed too, keeps a sandbox and runs doctor. It
// leaves nothing when it is told to end.
func TestClusterInside(t *testing.T) {
	if os.Getenv("MCP_BRIDGE_NODE_NET") != "veth" {
		t.Skip("MCP_BRIDGE_NODE_NET is not veth: pods don't reach the API server")
	}
	c, err := realDriver(t).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	apply(t, c.cli)
	token := addToken(t, c.cli)
	address := startInside(t, c.cli)

	call := caller(t, "http://"+address+"/mcp", token)
	if got := call("print(6 * 7)", ""); got != "42" {
		t.Errorf("a call: %q", got)
	}
	got := call("# /// script\n# dependencies = [\"frames\"]\n# ///\nprint(6 * 7)", "")
	if got != "42\n[environment: frames]" {
		t.Errorf("a call in an environment that was pushed: %q", got)
	}
	got = call("x = 6", "new")
	id := regexp.MustCompile(`\[sandbox (\S+): new\]`).FindStringSubmatch(got)
	if id == nil {
		t.Fatalf("a new sandbox: %q", got)
	}
	if got := call("print(x * 7)", id[1]); !strings.HasPrefix(got, "42\n[sandbox "+id[1]+", call 2]") {
		t.Errorf("the sandbox's next call: %q", got)
	}

	said, err := execute(t, c, bridges, bridges, "bridge", "mcp-bridge", "doctor")
	if t.Log(said); err != nil {
		t.Errorf("doctor: %v", err)
	}
	for _, want := range []string{
		guestDenies,
		"a pod without the guest reached the API server", // the node keeps no policies
	} {
		if !strings.Contains(said, want) {
			t.Errorf("doctor doesn't say %q", want)
		}
	}

	pods := c.cli.CoreV1().Pods(bridges)
	if err := pods.Delete(t.Context(), bridges, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bridge and its pods are gone", func() bool {
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
	leases, err := c.cli.CoordinationV1().Leases(bridges).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(leases.Items) != 0 {
		t.Errorf("leases are left: %v, %v", leases.Items, err)
	}
}

const guestDenies = "code could open no socket of the internet"

// framesLabels are those of an environment that has a package named frames.
const framesLabels = `{"io.mcp-bridge.environment": "frames",
	"io.mcp-bridge.environment.python": "{\"Version\": \"3.13.5\", \"Machine\": \"x86_64\", \"Glibc\": \"2.41\"}",
	"io.mcp-bridge.environment.packages": "[{\"Name\": \"frames\", \"Version\": \"1\"}]",
	"io.mcp-bridge.environment.size": "1", "io.mcp-bridge.environment.built": "2026-11-01T00:00:00Z"}`

// apply makes the objects of the manifests, and what the controllers of a cluster add to a
// namespace: the account that pods have, and the certificate of the API server.
func apply(t *testing.T, cli kubernetes.Interface) {
	t.Helper()
	ctx, o := t.Context(), metav1.CreateOptions{}
	certificate, err := os.ReadFile(filepath.Join(nodeDir(), "certs/apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	core, rbac := cli.CoreV1(), cli.RbacV1()
	servers, err := os.ReadFile(manifests + "/team.json")
	if err != nil {
		t.Fatal(err)
	}
	config := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: bridges}, Data: data}
	}
	for _, object := range append([]apiruntime.Object{find[*corev1.Namespace](t),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: bridges}},
		config("kube-root-ca.crt", map[string]string{"ca.crt": string(certificate)}),
		config(bridges, map[string]string{"team.json": string(servers),
			"frames.toml": "pushed = \"" + imageRef + "\"\n", "labels.frames.json": framesLabels}),
	}, objects(t, manifests, nil)...) {
		var err error
		switch v := object.(type) {
		case *corev1.Namespace:
			if _, err = core.Namespaces().Get(ctx, v.Name, metav1.GetOptions{}); err != nil {
				_, err = core.Namespaces().Create(ctx, v, o)
			}
		case *corev1.ServiceAccount:
			_, err = core.ServiceAccounts(bridges).Create(ctx, v, o)
		case *corev1.ConfigMap:
			_, err = core.ConfigMaps(bridges).Create(ctx, v, o)
		case *corev1.Service:
			_, err = core.Services(bridges).Create(ctx, v, o)
		case *rbacv1.Role:
			_, err = rbac.Roles(bridges).Create(ctx, v, o)
		case *rbacv1.RoleBinding:
			_, err = rbac.RoleBindings(bridges).Create(ctx, v, o)
		case *networkingv1.NetworkPolicy:
			_, err = cli.NetworkingV1().NetworkPolicies(bridges).Create(ctx, v, o)
		case *policyv1.PodDisruptionBudget:
			_, err = cli.PolicyV1().PodDisruptionBudgets(bridges).Create(ctx, v, o)
		case *autoscalingv2.HorizontalPodAutoscaler:
			_, err = cli.AutoscalingV2().HorizontalPodAutoscalers(bridges).Create(ctx, v, o)
		case *appsv1.Deployment:
			_, err = cli.AppsV1().Deployments(bridges).Create(ctx, v, o)
		default:
			t.Fatalf("the manifests have a %T, which this test doesn't know", object)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// addToken makes the secret of the clients' tokens, as docs/kubernetes.md says, and returns the one
// in it.
func addToken(t *testing.T, cli kubernetes.Interface) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "http-tokens")
	cmd := exec.CommandContext(t.Context(), program, "token", "add", "alice")
	cmd.Env = environ("MCP_BRIDGE_HTTP_TOKENS=" + file)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	hashes, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mcp-bridge-tokens"},
		Data: map[string][]byte{"http-tokens": hashes}}
	if _, err := cli.CoreV1().Secrets(bridges).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// environ returns what the program has: the tests' own settings would be unknown ones to it.
func environ(set ...string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "MCP_BRIDGE_")
	}), set...)
}

// startInside makes a pod as the Deployment's controller would, with the images that the node has,
// and returns its address once it is ready.
func startInside(t *testing.T, cli kubernetes.Interface) string {
	t.Helper()
	template := find[*appsv1.Deployment](t).Spec.Template
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: bridges, Labels: template.Labels},
		Spec: template.Spec}
	pod.Spec.InitContainers[0].Image = bridgeImage
	c := &pod.Spec.Containers[0]
	c.Image = bridgeImage
	for i := range c.Env {
		if c.Env[i].Name == "MCP_BRIDGE_IMAGE" {
			c.Env[i].Value = imageRef
		}
	}
	pods := cli.CoreV1().Pods(bridges)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			log, err := pods.GetLogs(bridges, &corev1.PodLogOptions{}).DoRaw(context.Background())
			now, _ := pods.Get(context.Background(), bridges, metav1.GetOptions{})
			t.Logf("the bridge's status: %+v\nand its log: %v\n%s", now.Status, err, log)
		}
	})
	var address string
	eventually(t, "the bridge in the cluster is ready", func() bool {
		p, err := pods.Get(t.Context(), bridges, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		address = net.JoinHostPort(p.Status.PodIP, "7878")
		for _, cond := range p.Status.Conditions {
			if cond.Type == corev1.PodReady {
				return cond.Status == corev1.ConditionTrue
			}
		}
		return false
	})
	return address
}

// caller returns what calls run_python over HTTP, in a sandbox unless that is empty.
func caller(t *testing.T, url, token string) func(code, sandbox string) string {
	t.Helper()
	cli, err := client.NewStreamableHttpClient(url,
		transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cli.Close() })
	if err := cli.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "t", Version: "1"}
	if _, err := cli.Initialize(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	return func(code, sandbox string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		request := mcp.CallToolRequest{}
		arguments := map[string]any{"code": code}
		if sandbox != "" {
			arguments["sandbox"] = sandbox
		}
		request.Params.Name, request.Params.Arguments = "run_python", arguments
		result, err := cli.CallTool(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, content := range result.Content {
			if text, ok := content.(mcp.TextContent); ok {
				all = append(all, text.Text)
			}
		}
		return strings.TrimSpace(strings.Join(all, "\n"))
	}
}

// TestClusterKilled: another bridge removes the pods and the lease of one that was killed by KILL
// while it ran code, within a minute, and its own stay.
func TestClusterKilled(t *testing.T) {
	d := realDriver(t)
	r := begin(t, d, realTarget(d)(t).Spec(waitsForALine))
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leases := func() int {
		list, err := c.leases().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	own, ownLeases := countPods(t, d), leases()
	cmd := exec.Command(program, "run", "-c", "import time; time.sleep(600)")
	cmd.Env = environ("MCP_BRIDGE_RUNTIME=kubernetes", "MCP_BRIDGE_IMAGE="+imageRef)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	eventually(t, "it runs code", func() bool {
		select {
		case <-ended:
			t.Fatal("the program has ended")
		default:
		}
		return countPods(t, d) > own
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	eventually(t, "its pods are gone", func() bool { return countPods(t, d) == own })
	eventually(t, "its lease is gone", func() bool { return leases() == ownLeases })
	took := time.Since(killed)
	t.Logf("nothing is left of it after %v", took.Round(time.Millisecond))
	if took > stormBound {
		t.Errorf("it took longer than %v", stormBound)
	}
	if _, err := r.in.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	if <-r.done; r.err != nil || r.exit.Code != 7 {
		t.Errorf("the other bridge's run ended with %+v, %v; want code 7", r.exit, r.err)
	}
}

// TestClusterKubelet: a kubelet that is killed while it carries the streams of a run ends that run,
// which isn't told as a success, and nothing is left of its pod. The next run takes place.
func TestClusterKubelet(t *testing.T) {
	d := realDriver(t)
	own := countPods(t, d)
	s := warm(t, d, imageRef)
	var killed time.Time
	kill := sync.OnceFunc(func() {
		killed = time.Now()
		text, err := os.ReadFile(filepath.Join(nodeDir(), "kubelet.pid"))
		pid, failed := strconv.Atoi(strings.TrimSpace(string(text)))
		if err := errors.Join(err, failed); err != nil {
			t.Error(err)
			return
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	r, err := s.Run(t.Context(), sandbox.Request{Code: "import time\nprint('up', flush=True)\ntime.sleep(20)",
		Timeout: time.Minute, Output: func(sandbox.Chunk) { kill() }}, nil)
	if err == nil && r.Status == sandbox.StatusOK {
		t.Errorf("the run ended with %+v, which is a success", r)
	}
	t.Logf("its run ended after %v: %v, %s %s", time.Since(killed).Round(time.Millisecond), err, r.Status,
		r.Message)
	if r, err = s.Run(t.Context(), sandbox.Request{Code: "print(1)", Timeout: time.Minute}, nil); err != nil ||
		r.Stdout() != "1\n" {
		t.Errorf("the next run: %+v, %v", r, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "nothing is left", func() bool { return countPods(t, d) == own })
	took := time.Since(killed)
	t.Logf("nothing is left of it after %v", took.Round(time.Millisecond))
	if took > stormBound {
		t.Errorf("it took longer than %v", stormBound)
	}
}
