//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// guest is a container of the fake node: a process, and what is attached to it. As on a node,
// what it prints while nothing is attached is lost, and its input ends with the first attachment.
type guest struct {
	cmd   *exec.Cmd // nil for one that is simulated
	stdin io.WriteCloser
	gone  chan struct{} // closed once the process and its group have ended

	mu   sync.Mutex
	to   [2]io.Writer  // the outputs of who is attached; nil for no one
	over chan struct{} // closed once both outputs have ended
}

// start does what a kubelet does with a new pod.
func (f *fake) start(p *corev1.Pod) {
	image := p.Spec.Containers[0].Image
	waiting := func(reason, message string) {
		f.change(p.Name, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
		})
	}
	if f.begin != nil {
		if s := f.begin(p); s != nil {
			f.change(p.Name, func(p *corev1.Pod) { p.Status = *s })
			return
		}
	}
	switch {
	case strings.HasPrefix(image, "missing.invalid"):
		waiting("ErrImagePull", "failed to resolve reference: dial tcp: lookup missing.invalid: no such host")
		return
	case p.Spec.Containers[0].ImagePullPolicy == corev1.PullNever && !strings.Contains(image, "here"):
		waiting("ErrImageNeverPull", `Container image "x" is not present with pull policy of Never`)
		return
	}
	g, err := f.simulated()
	if g == nil {
		g, err = startGuest(p.Spec.Containers[0], f.service)
	}
	if err != nil {
		waiting("RunContainerError", err.Error())
		return
	}
	f.mu.Lock()
	f.guests[p.Name] = g
	f.mu.Unlock()
	f.change(p.Name, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container,
			ImageID: "registry.example/python@sha256:" + strings.Repeat("ab", 32),
			State:   corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
	})
	go func() {
		<-g.gone
		f.change(p.Name, func(p *corev1.Pod) {
			code := g.code()
			p.Status.Phase = corev1.PodSucceeded
			if code != 0 {
				p.Status.Phase = corev1.PodFailed
			}
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed"}}
		})
	}()
}

func startGuest(c corev1.Container, service string) (*guest, error) {
	all := append(c.Command[:len(c.Command):len(c.Command)], c.Args...)
	cmd := exec.Command(all[0], all[1:]...)
	host, port, _ := strings.Cut(service, ":")
	cmd.Env = []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, "HOSTNAME=sandbox"}
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	g := &guest{cmd: cmd, gone: make(chan struct{}), over: make(chan struct{})}
	var err error
	if g.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	var outputs sync.WaitGroup
	var ends []*os.File
	for i, to := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		from, end, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		*to = end
		ends = append(ends, end)
		outputs.Go(func() { _, _ = io.Copy(&sink{g, i}, from); from.Close() })
	}
	err = cmd.Start()
	for _, end := range ends {
		end.Close()
	}
	if err != nil {
		return nil, err
	}
	go func() { outputs.Wait(); close(g.over) }() // a node's streams end with the last who holds them
	go func() {
		_ = cmd.Wait() //nolint:errcheck // its state tells
		g.kill()       // its children die with it
		<-g.over
		close(g.gone)
	}()
	return g, nil
}

// simulated returns a guest that is no process, where the test wants such ones.
func (f *fake) simulated() (*guest, error) {
	if f.simulate == nil {
		return nil, nil
	}
	in, stdin := io.Pipe()
	g := &guest{stdin: stdin, gone: make(chan struct{}), over: make(chan struct{})}
	go func() {
		f.simulate(in, &sink{g, 0})
		in.Close()
		close(g.over)
		close(g.gone)
	}()
	return g, nil
}

func (g *guest) kill() {
	if g.cmd == nil {
		g.stdin.Close()
		return
	}
	_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
}

// code returns how a guest that is gone has ended.
func (g *guest) code() int32 {
	if g.cmd == nil {
		return 0
	}
	if ws, ok := g.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int32(ws.Signal()) //nolint:gosec // a signal's number
	}
	return int32(g.cmd.ProcessState.ExitCode()) //nolint:gosec // an exit status
}

// sink is an output of a guest.
type sink struct {
	g *guest
	i int
}

func (s *sink) Write(p []byte) (int, error) {
	s.g.mu.Lock()
	to := s.g.to[s.i]
	s.g.mu.Unlock()
	if to != nil {
		_, _ = to.Write(p)
	}
	return len(p), nil
}

// Channels of the protocol.
const (
	channelIn = iota
	channelOut
	channelErr
	channelStatus
	channelSize
)

// attach carries the streams of a guest, as the API server and a kubelet do together.
func (f *fake) attach(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	g := f.guests[r.PathValue("name")]
	f.mu.Unlock()
	if g == nil {
		notFound(w, r.PathValue("name"))
		return
	}
	if f.plain {
		f.attachSPDY(w, r, g)
		return
	}
	channels := []wsstream.ChannelType{channelIn: wsstream.ReadChannel, channelOut: wsstream.WriteChannel,
		channelErr: wsstream.WriteChannel, channelStatus: wsstream.WriteChannel, channelSize: wsstream.ReadChannel}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		"v5.channel.k8s.io": {Binary: true, Channels: channels}})
	_, streams, err := conn.Open(w, r)
	if err != nil {
		return
	}
	defer conn.Close()
	left := make(chan struct{})
	go func() { // it ends with the connection only
		_, _ = io.Copy(io.Discard, streams[channelSize])
		close(left)
	}()
	f.carry(g, streams[channelIn], streams[channelOut], streams[channelErr], streams[channelStatus], left)
}

// attachSPDY is attach for a client whose WebSocket was refused, as proxies do.
func (f *fake) attachSPDY(w http.ResponseWriter, r *http.Request, g *guest) {
	if r.Method == http.MethodGet {
		http.Error(w, "no WebSockets here", http.StatusForbidden)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
		return
	}
	opened := make(chan httpstream.Stream, 8)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		opened <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	by := map[string]httpstream.Stream{}
	for range 4 {
		select {
		case s := <-opened:
			by[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return
		}
	}
	left := make(chan struct{})
	go func() { <-conn.CloseChan(); close(left) }()
	f.carry(g, by[corev1.StreamTypeStdin], by[corev1.StreamTypeStdout], by[corev1.StreamTypeStderr],
		by[corev1.StreamTypeError], left)
}

// carry connects a guest with its streams until it has ended, or the client has left.
func (f *fake) carry(g *guest, in io.Reader, out, errs, status io.Writer, left <-chan struct{}) {
	g.mu.Lock()
	g.to = [2]io.Writer{out, errs}
	g.mu.Unlock()
	go func() {
		_, _ = io.Copy(g.stdin, in)
		g.stdin.Close() // stdinOnce
	}()
	select {
	case <-g.over:
		_ = json.NewEncoder(status).Encode(metav1.Status{Status: metav1.StatusSuccess})
	case <-left:
	case <-f.downs():
	}
	g.mu.Lock()
	g.to = [2]io.Writer{}
	g.mu.Unlock()
	g.stdin.Close()
}
