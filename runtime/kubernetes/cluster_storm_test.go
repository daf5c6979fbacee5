//go:build kubernetes

package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	bridgeVar = "MCP_BRIDGE_TEST_BRIDGE" // set for a child process, which is a bridge
	waveLasts = 10 * time.Second
	theirs    = "default" // the bridges' namespace
	others    = "others"
)

// TestClusterStorm: 20 bridges, which are processes, have 200 pods of a real API server. 15 of them
// are killed at random moments, and so are etcd, the API server and a node, which come back.
// Nothing of the dead is left after 60 s, no pod is attached to twice, and the bridges, which have
// the rights of the manifests alone, touch nothing else. test/kubernetes/storm gives it a cluster.
func TestClusterStorm(t *testing.T) {
	if os.Getenv(bridgeVar) != "" {
		beBridge(t)
		return
	}
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "kwok" {
		t.Skip("MCP_BRIDGE_TEST_RUNTIME is not kwok: no cluster that may be killed")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Timeout, cfg.QPS, cfg.Burst = 10*time.Second, 4, 50 // which paces what is asked until it is so
	cli := client.NewForConfigOrDie(cfg)
	grantLeast(t, cli, theirs)
	seed, began := rand.Uint64(), time.Now()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	var living, dead []*process
	for range stormBridges {
		living = append(living, startProcess(t))
	}
	foreign := makeForeign(t, cli, living)
	var cut time.Time // when the API server was killed, with which all streams end
	want := 0         // pods that were attached to
	for range stormWaves {
		eventually(t, "the living have their pods", func() bool { return allUp(t, cli, living, cut) })
		t.Logf("after %v %d bridges have their pods", time.Since(began).Round(time.Second), len(living))
		want += len(living) * stormPods
		random.Shuffle(len(living), func(i, j int) { living[i], living[j] = living[j], living[i] })
		node := fmt.Sprint("kwok-", 1+random.IntN(4))
		kills := []func(){
			func() { killProgram(t, "etcd") }, func() { killProgram(t, node) },
			func() { killProgram(t, "apiserver"); cut = time.Now() },
		}
		for _, b := range living[:stormDead] {
			kills = append(kills, func() { _ = b.cmd.Process.Kill() })
		}
		dead, living = append(dead, living[:stormDead]...), living[stormDead:]
		var wave sync.WaitGroup
		for _, kill := range kills {
			at := time.After(time.Duration(random.Int64N(int64(waveLasts))))
			wave.Go(func() { <-at; kill() })
		}
		wave.Wait()
	}
	last := time.Now()
	eventually(t, "nothing of the dead is left", func() bool { return ownedBy(t, cli, dead) == 0 })
	took := time.Since(last)
	t.Logf("nothing of the dead was left %v after the last kill", took.Round(time.Second))
	if took > stormBound {
		t.Errorf("want at most %v", stormBound)
	}
	eventually(t, "the living have their pods", func() bool { return allUp(t, cli, living, cut) })
	want += len(living) * stormPods
	for _, b := range living {
		b.stdin.Close()
	}
	for _, b := range living {
		<-b.over
		if err := b.cmd.Wait(); err != nil {
			t.Errorf("a bridge that was told to end: %v", err)
		}
	}
	if n := ownedBy(t, cli, living); n != 0 {
		t.Errorf("%d pods and leases are left of bridges that have ended", n)
	}
	untouched(t, cli, foreign)
	audit(t, want)
	t.Logf("it took %v", time.Since(began).Round(time.Second))
}

// process is a bridge in a storm.
type process struct {
	cmd      *exec.Cmd
	stdin    io.Closer // it ends with it
	instance string
	up       atomic.Int64  // how many of its pods it has the streams of
	over     chan struct{} // closed once it has said all
	had      belongings    // by the last look
}

func startProcess(t *testing.T) *process {
	t.Helper()
	b := &process{cmd: exec.Command(os.Args[0], "-test.run=^TestClusterStorm$"), over: make(chan struct{})}
	b.cmd.Env = append(os.Environ(), bridgeVar+"=1", "KUBECONFIG="+filepath.Join(nodeDir(), "least.config"))
	b.cmd.Stderr = os.Stderr
	var err error
	if b.stdin, err = b.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("bridge %s is attached to %d pods, and had %+v", b.instance, b.up.Load(), b.had)
		}
		_ = b.cmd.Process.Kill() // unless it has ended
		<-b.over
		_ = b.cmd.Wait()
	})
	lines := bufio.NewScanner(stdout)
	for b.instance == "" && lines.Scan() {
		b.instance, _ = strings.CutPrefix(lines.Text(), "instance ")
	}
	go func() {
		defer close(b.over)
		for lines.Scan() {
			if n, ok := strings.CutPrefix(lines.Text(), "up "); ok {
				up, _ := strconv.ParseInt(n, 10, 64)
				b.up.Store(up)
			} else if lines.Text() != "PASS" {
				t.Logf("bridge %s: %s", b.instance, lines.Text())
			}
		}
	}()
	return b
}

// beBridge keeps ten pods until its input ends. It says how many of them it is attached to.
func beBridge(t *testing.T) {
	d := New(Config{})
	defer d.Close()
	g := realTarget(d)(t)
	fmt.Println("instance", g.Owner.Instance) //nolint:forbidigo // to the test
	s := g.Spec("")
	s.MaxAge = time.Hour
	ctx, end := context.WithCancel(t.Context())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); end() }()
	var mu sync.Mutex
	up := 0
	count := func(by int) {
		mu.Lock()
		defer mu.Unlock()
		up += by
		fmt.Println("up", up) //nolint:forbidigo // to the test
	}
	var runs sync.WaitGroup
	for range stormPods {
		runs.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				std := silent()
				std.Stdin = blocked(t)
				attached := 0
				std.Stdout = writer(func([]byte) {
					if attached == 0 {
						attached = 1
						count(1)
					}
				})
				exit, err := d.Run(ctx, s, std) // it fails while the server is away
				count(-attached)
				if err == nil && ctx.Err() == nil {
					t.Errorf("a pod that never ends has ended: %+v", exit)
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	runs.Wait()
}

// killProgram kills one of the cluster's programs. It is started again.
func killProgram(t *testing.T, name string) {
	text, err := os.ReadFile(filepath.Join(nodeDir(), name+".pid"))
	if err != nil {
		t.Error(err)
		return
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if err := syscall.Kill(pid, syscall.SIGKILL); pid == 0 || err != nil {
		t.Errorf("killing %s, process %d: %v", name, pid, err)
	}
}

// belongings are what an instance has in the bridges' namespace.
type belongings struct {
	running int // pods that run, and weren't told to end
	all     int // pods and leases
}

// belong returns what each instance has. Pods that were made before since don't count as running.
func belong(t *testing.T, cli client.Interface, since time.Time) (map[string]belongings, error) {
	pods, err := cli.CoreV1().Pods(theirs).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	leases, err := cli.CoordinationV1().Leases(theirs).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	has := map[string]belongings{}
	for _, p := range pods.Items {
		h := has[p.Labels[runtime.LabelInstance]]
		h.all++
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && p.CreationTimestamp.After(since) {
			h.running++
		}
		has[p.Labels[runtime.LabelInstance]] = h
	}
	for _, l := range leases.Items {
		h := has[l.Labels[runtime.LabelInstance]]
		h.all++
		has[l.Labels[runtime.LabelInstance]] = h
	}
	return has, nil
}

// allUp reports whether each bridge has its pods, which were made since, and is attached to them.
func allUp(t *testing.T, cli client.Interface, bridges []*process, since time.Time) bool {
	has, err := belong(t, cli, since)
	for _, b := range bridges {
		b.had = has[b.instance]
	}
	for _, b := range bridges {
		if err != nil || has[b.instance].running != stormPods || b.up.Load() != stormPods {
			return false
		}
	}
	return true
}

// ownedBy counts the pods and leases of bridges; -1 means that the API server didn't tell.
func ownedBy(t *testing.T, cli client.Interface, bridges []*process) (n int) {
	has, err := belong(t, cli, time.Time{})
	if err != nil {
		return -1
	}
	for _, b := range bridges {
		n += has[b.instance].all
	}
	return n
}

// makeForeign makes pods that are no bridge's: one in the bridges' namespace, and in another one a
// pod with the labels of each bridge. It returns them by name once they run.
func makeForeign(t *testing.T, cli client.Interface, bridges []*process) map[string]*corev1.Pod {
	t.Helper()
	_, err := cli.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: others}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cli.CoreV1().ServiceAccounts(others).Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	add := func(namespace, name string, labels map[string]string) {
		pods[name] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: imageRef}}},
		}
		_, err := cli.CoreV1().Pods(namespace).Create(t.Context(), pods[name], metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	add(theirs, "foreign", nil)
	for _, b := range bridges {
		add(others, "foreign-"+strings.ToLower(b.instance), map[string]string{labelApp: app,
			runtime.LabelInstance: b.instance})
	}
	for _, p := range pods {
		eventually(t, "foreign pods run", func() bool {
			now, err := cli.CoreV1().Pods(p.Namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
			pods[p.Name] = now
			return err == nil && now.Status.Phase == corev1.PodRunning
		})
	}
	return pods
}

// untouched checks that pods are as they were.
func untouched(t *testing.T, cli client.Interface, pods map[string]*corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		now, err := cli.CoreV1().Pods(p.Namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
		if err != nil || now.UID != p.UID || now.ResourceVersion != p.ResourceVersion {
			t.Errorf("pod %s of namespace %s is another one or was changed: %v", p.Name, p.Namespace, err)
		}
	}
}

// audit checks by the API server's log what the bridges' account has asked for. A stream that was
// opened is in it though the server is killed before it ends. At least want pods had a stream.
func audit(t *testing.T, want int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(nodeDir(), "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	requests, attached := 0, map[string]int{}
	for line := range bytes.Lines(text) {
		var e struct {
			Stage, RequestURI string
			User              struct{ Username string }
			ObjectRef         *struct{ Resource, Subresource, Namespace, Name string }
			ResponseStatus    struct{ Code int }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		requests++
		switch o := e.ObjectRef; {
		case o == nil, o.Resource == "selfsubjectaccessreviews": // the cluster's version; own rights
		case o.Namespace != theirs:
			t.Errorf("%s asked for %s", e.User.Username, e.RequestURI)
		case o.Subresource == "attach" && e.Stage == "ResponseStarted" && e.ResponseStatus.Code == 101:
			attached[o.Name]++
		}
	}
	for pod, n := range attached {
		if n > 1 {
			t.Errorf("pod %s was attached to %d times", pod, n)
		}
	}
	if len(attached) < want {
		t.Errorf("%d pods were attached to, want at least %d", len(attached), want)
	}
	t.Logf("%d entries in the API server's log; %d pods were attached to", requests, len(attached))
}
