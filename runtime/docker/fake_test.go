package docker

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/pkg/stdcopy"
)

// fake is an engine of a few dozen lines: it remembers what was created and removed, and runs
// nothing. A container ends when it is killed, or at once with code 7 where instant is set.
type fake struct {
	info       map[string]any
	version    string // of the API; 1.41 where empty
	components []string
	instant    bool
	forgets    bool             // removes a container that has ended before it can be inspected
	oom        bool             // such a container was killed when out of memory
	hang       string           // the last part of a path, or a method, that is not answered
	release    chan struct{}    // ends a hang, where there is one
	answer     map[string]reply // instead of the usual, by method and last part: "POST create"

	mu      sync.Mutex
	asks    *sync.Cond    // told of each request
	reached chan struct{} // closed when a request is left unanswered
	asked   []string
	bodies  map[string]string
	names   map[string]*fakeContainer // by name, which is the id too
}

type reply struct {
	status int
	body   any
}

type fakeContainer struct {
	dead chan struct{}
	once sync.Once
}

func (c *fakeContainer) die() { c.once.Do(func() { close(c.dead) }) }

func newFake() *fake {
	f := &fake{info: dockerInfo(true, "1"), reached: make(chan struct{}), bodies: map[string]string{},
		names: map[string]*fakeContainer{}}
	f.asks = sync.NewCond(&f.mu)
	return f
}

// dockerInfo is what a docker says of itself.
func dockerInfo(rootless bool, cgroups string) map[string]any {
	options := []string{"name=seccomp,profile=default"}
	driver := "cgroupfs"
	if rootless {
		options = append(options, "name=rootless")
		if cgroups == "1" {
			driver = "none"
		}
	}
	return map[string]any{
		"ServerVersion": "20.10.24", "OperatingSystem": "Debian", "Architecture": "x86_64",
		"SecurityOptions": options, "NCPU": 2,
		"CgroupVersion": cgroups, "CgroupDriver": driver, "MemoryLimit": true, "SwapLimit": true,
		"PidsLimit": true, "CpuCfsQuota": true,
		"DefaultRuntime": "runc", "Runtimes": map[string]any{"runc": map[string]any{"path": "runc"},
			"crun": map[string]any{"path": "crun"}, "sentry": map[string]any{"path": "/opt/runsc"}},
		"KernelVersion": "6.1.0",
	}
}

// listen serves f on a unix socket until the test is over, and returns the endpoint.
func (f *fake) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "docker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: f}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return "unix://" + l.Addr().String()
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := parts[len(parts)-1]
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+last)
	f.bodies[last] = string(body)
	f.asks.Broadcast()
	f.mu.Unlock()
	if (last == f.hang || r.Method == f.hang) && !f.hung(r) {
		return
	}
	say := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	version := f.version
	if version == "" {
		version = "1.41"
	}
	w.Header().Set("API-Version", version)
	f.mu.Lock()
	a, ok := f.answer[r.Method+" "+last]
	f.mu.Unlock()
	if ok {
		say(a.status, a.body)
		return
	}
	f.mu.Lock()
	c := f.names[last]
	if len(parts) > 2 && c == nil {
		c = f.names[parts[len(parts)-2]]
	}
	f.mu.Unlock()
	switch {
	case last == "_ping":
		w.WriteHeader(http.StatusOK)
	case last == "info":
		say(http.StatusOK, f.info)
	case last == "version":
		all := []map[string]string{}
		for _, name := range f.components {
			all = append(all, map[string]string{"Name": name})
		}
		say(http.StatusOK, map[string]any{"Components": all})
	case strings.Contains(r.URL.Path, "/images/"):
		say(http.StatusOK, map[string]any{"Id": "sha256:1234", "Architecture": "amd64"})
	case last == "create":
		name := r.URL.Query().Get("name")
		f.mu.Lock()
		f.names[name] = &fakeContainer{dead: make(chan struct{})}
		f.mu.Unlock()
		say(http.StatusCreated, map[string]any{"Id": name})
	case last == "events":
		if f.oom {
			fmt.Fprintln(w, `{"Type":"container","Action":"oom"}`)
		}
		fmt.Fprintln(w, `{"Type":"container","Action":"die"}`)
	case c == nil:
		say(http.StatusNotFound, map[string]string{"message": "No such container: " + r.URL.Path})
	default:
		f.container(w, r, c, last, say)
	}
}

// hung leaves a request unanswered; it returns true where it is to be answered after all.
func (f *fake) hung(r *http.Request) bool {
	f.mu.Lock()
	select {
	case <-f.reached:
	default:
		close(f.reached)
	}
	f.mu.Unlock()
	select {
	case <-r.Context().Done(): // the client's
		return false
	case <-f.release:
		return true
	}
}

func (f *fake) container(w http.ResponseWriter, r *http.Request, c *fakeContainer, last string,
	say func(int, any)) {
	remove := func() {
		c.die()
		f.mu.Lock()
		defer f.mu.Unlock()
		for name, other := range f.names {
			if other == c {
				delete(f.names, name)
			}
		}
	}
	switch {
	case r.Method == http.MethodDelete:
		remove()
		w.WriteHeader(http.StatusNoContent)
	case last == "attach":
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(buf, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
		fmt.Fprint(stdcopy.NewStdWriter(buf, stdcopy.Stdout), "out")
		_ = buf.Flush()
		<-c.dead
	case last == "start":
		w.WriteHeader(http.StatusNoContent)
		if f.instant {
			c.die()
		}
	case last == "kill":
		w.WriteHeader(http.StatusNoContent)
		c.die()
	case last == "wait":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		select {
		case <-c.dead:
		case <-r.Context().Done():
			return
		}
		if f.forgets {
			remove()
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"StatusCode": 7})
	case last == "json" && f.forgets:
		remove()
		say(http.StatusNotFound, map[string]string{"message": "No such container"})
	case last == "json":
		state := map[string]any{"Running": true, "StartedAt": "2026-01-01T00:00:00Z",
			"FinishedAt": "0001-01-01T00:00:00Z"}
		select {
		case <-c.dead:
			state = map[string]any{"Running": false, "ExitCode": 7, "StartedAt": "2026-01-01T00:00:00Z",
				"FinishedAt": "2026-01-01T00:00:01.5Z"}
		default:
		}
		say(http.StatusOK, map[string]any{"Id": "x", "State": state})
	default:
		http.NotFound(w, r)
	}
}

// left are the containers that were created and not removed.
func (f *fake) left() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for name := range f.names {
		all = append(all, name)
	}
	return all
}
