package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
	"github.com/mcp-bridge/mcp-bridge/runtime/image"
)

var update = flag.Bool("update", false, "write the golden files again")

// examineWith examines a machine with these engines, and an environment without a variable of ours
// but those given.
func examineWith(t *testing.T, d *doctor, engines []*fakeEngine, env map[string]string) bool {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for k, v := range env {
		t.Setenv(k, v)
	}
	cfg, err := settings.Read()
	must(t, err)
	catalog := discovery.Catalog{}
	if d.parts != nil {
		catalog = d.catalog
	}
	d.parts = &parts{cfg: cfg, log: slog.New(slog.DiscardHandler), catalog: catalog}
	var candidates []detect.Candidate
	for i, e := range engines {
		candidates = append(candidates, detect.Candidate{Name: []string{"podman", "docker"}[i],
			Open: func() runtime.Driver { return e }})
	}
	d.driver = detect.New(detect.Config{Candidates: candidates, OS: "linux"})
	must(t, d.assemble(once))
	defer func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}()
	if d.print == nil {
		d.print = func(row) {}
	}
	if d.progress == nil {
		d.progress = func(string) {}
	}
	d.settings(func(name string) (string, bool) { v, ok := env[name]; return v, ok }, true)
	return d.examine(t.Context())
}

// find is the first row of a check whose words contain all of want's.
func find(rows []row, want row) bool {
	return slices.ContainsFunc(rows, func(r row) bool {
		return r.Check == want.Check && r.Status == want.Status &&
			strings.Contains(r.Found, want.Found) && strings.Contains(r.Means, want.Means) &&
			strings.Contains(r.Fix, want.Fix)
	})
}

// TestDoctorNames has each thing that the doctor can name, the failures first.
func TestDoctorNames(t *testing.T) {
	absent := &runtime.UnavailableError{Engine: "docker", Err: fmt.Errorf("no socket: %w", fs.ErrNotExist),
		Next: "install docker"}
	rootful := &runtime.UnavailableError{Engine: "podman", Endpoint: "unix:///run/podman/podman.sock",
		Err: errors.New("it runs as root"), Next: "MCP_BRIDGE_ALLOW_ROOTFUL=true"}
	runtimeMissing := &runtime.UnavailableError{Engine: "podman", Err: errors.New("it has no OCI runtime runsc"),
		Next: "install runsc"}
	resting := &runtime.UnavailableError{Engine: "podman", Err: errors.New("its virtual machine is stopped"),
		Next: "podman machine start", Dormant: true}
	dead := runtime.Owner{Instance: "i", PID: 4711}
	memoryBeyond := fine
	if _, known := settings.TotalMemory(); known {
		memoryBeyond = toKnow
	}
	tests := []struct {
		name   string
		change func(*fakeEngine)
		env    map[string]string
		works  bool
		want   []row
		gone   string // a check that no row is of
	}{
		{"an engine that isn't installed", func(e *fakeEngine) { e.err = absent }, nil, false,
			[]row{{"engine podman", broken, "no socket", "can't be used", "install docker"},
				{"engine docker", broken, "no socket", "", ""}, {"engine", broken, "none", "", "install podman"}}, "run"},
		{"a rootful engine", func(e *fakeEngine) { e.err = rootful }, nil, false,
			[]row{{"engine podman", broken, "at unix:///run/podman/podman.sock: it runs as root", "",
				"MCP_BRIDGE_ALLOW_ROOTFUL=true"}, {"engine", broken, "", "", "MCP_BRIDGE_ALLOW_ROOTFUL=true"}}, "run"},
		{"an OCI runtime that isn't there", func(e *fakeEngine) { e.err = runtimeMissing },
			map[string]string{"MCP_BRIDGE_OCI_RUNTIME": "runsc"}, false,
			[]row{{"engine podman", broken, "no OCI runtime runsc", "", "install runsc"}}, "run"},
		{"an engine that doesn't start", func(e *fakeEngine) {
			e.err, e.startErr = resting,
				errors.New("no hypervisor")
		}, nil, false,
			[]row{{"engine podman", toKnow, "at rest: its virtual machine is stopped", "started", ""},
				{"engine podman", broken, "no hypervisor", "", ""}}, "run"},
		{"no image and no registry", func(e *fakeEngine) {
			e.missing, e.pullErr = true,
				errors.New("dial tcp: no such host")
		}, nil, false,
			[]row{{"image", toKnow, "not here yet", "pulled now", ""},
				{"image", toKnow, "registry can't be reached", "made now", ""},
				{"image", broken, "mmdebstrap is not installed", "no code can be run",
					"sudo apt-get install mmdebstrap"}}, "run"},
		{"an image of the user's and no registry", func(e *fakeEngine) {
			e.missing, e.pullErr = true,
				errors.New("dial tcp: no such host")
		}, map[string]string{"MCP_BRIDGE_IMAGE": "mine"}, false,
			[]row{{"image", broken, "registry can't be reached", "", "image build"}}, "run"},
		{"no image and no space", func(e *fakeEngine) {
			e.missing, e.pullErr = true,
				errors.New("write: no space left on device")
		}, nil, false,
			[]row{{"image", broken, "no space left", "", "prune"}}, "run"},
		{"no image and no pull", func(e *fakeEngine) { e.missing = true },
			map[string]string{"MCP_BRIDGE_PULL": "never"}, false,
			[]row{{"image", broken, "MCP_BRIDGE_PULL=never", "", "image pull"}}, "run"},
		{"an image for another machine", func(e *fakeEngine) { e.image.Arch = "arm64" }, nil, false,
			[]row{{"image", fine, "digest sha256:22", "", ""}, {"python", broken, "made for arm64", "",
				"MCP_BRIDGE_IMAGE"}}, "run"},
		{"another image than was pinned", func(*fakeEngine) {},
			map[string]string{"MCP_BRIDGE_IMAGE": "python@sha256:" + strings.Repeat("3", 64)}, false,
			[]row{{"python", broken, "another one under that name", "", "image pull"}}, "run"},
		{"an image with an old Python", func(e *fakeEngine) {
			e.end, e.says = runtime.Exit{Code: 1}, "mcp-bridge guest: its Python is 3.9, and 3.10 or newer is needed"
		}, nil, false,
			[]row{{"python", broken, "its Python is 3.9", "", "Python 3.10 or newer"}}, "run"},
		{"a guest that never comes", func(e *fakeEngine) { e.end = runtime.Exit{Code: 126} }, nil, false,
			[]row{{"run", broken, "ended with code 126 before it was ready", "no code can be run",
				"mcp-bridge doctor"}}, "guest filter"},
		{"an engine that fails a run", func(e *fakeEngine) {
			e.endErr = &runtime.UnavailableError{Engine: "podman", Err: errors.New("it went away"), Next: "start it"}
		}, nil, false, []row{{"run", broken, "it went away", "", "start it"}}, "guest filter"},

		{"an engine at rest", func(e *fakeEngine) { e.err = resting }, nil, true,
			[]row{{"engine podman", toKnow, "at rest", "", ""}, {"engine podman", fine, "podman 5.4.2", "chosen", ""}},
			""},
		{"a rootful engine that is allowed", func(e *fakeEngine) { e.facts.Rootless = false },
			map[string]string{"MCP_BRIDGE_ALLOW_ROOTFUL": "true"}, true,
			[]row{{"settings", toKnow, "MCP_BRIDGE_ALLOW_ROOTFUL", "hand over the machine", "unset"},
				{"rootless", toKnow, "no", "", "ordinary user"}}, ""},
		{"a virtual machine", func(e *fakeEngine) { e.facts.Rootless, e.facts.Desktop = false, true }, nil, true,
			[]row{{"rootless", fine, "virtual machine", "", ""},
				{"engine podman", fine, "in a virtual machine", "", ""}}, ""},
		{"the engine's own filter", func(e *fakeEngine) { e.facts.Seccomp = "engine" },
			map[string]string{"MCP_BRIDGE_SECCOMP": "engine"}, true,
			[]row{{"seccomp", toKnow, "default", "guest's own filter", "unset MCP_BRIDGE_SECCOMP"},
				{"settings", toKnow, "MCP_BRIDGE_SECCOMP=engine", "not the strict one", ""}}, ""},
		{"an engine that takes no profile", func(e *fakeEngine) {
			e.facts.Seccomp, e.facts.Lacks = "engine", []string{"it takes no seccomp profile"}
		}, nil, true,
			[]row{{"seccomp", toKnow, "default", "", "takes a profile"},
				{"lacks", toKnow, "takes no seccomp profile", "", ""}}, ""},
		{"an engine without a filter", func(e *fakeEngine) { e.facts.Seccomp = "" }, nil, true,
			[]row{{"seccomp", toKnow, "no filter", "only the guest's", ""}}, ""},
		{"a profile of the user's", func(e *fakeEngine) { e.facts.Seccomp = "/etc/mine.json" }, nil, true,
			[]row{{"seccomp", fine, "/etc/mine.json", "", ""}}, ""},
		{"no LSM", func(e *fakeEngine) { e.facts.LSM = nil }, nil, true, []row{{"LSM", toKnow, "neither", "", ""}},
			""},
		{"cgroup v1, a user namespace for each", func(e *fakeEngine) {
			e.facts.CgroupVersion, e.facts.Enforces = 1,
				runtime.Enforced{}
		}, map[string]string{"MCP_BRIDGE_CPUS": "1.5"}, true,
			[]row{{"limit memory", toKnow, "512 MiB", "watched by the guest", "cgroup v2"},
				{"limit pids", fine, "128", "kept by the kernel, set by the guest", ""},
				{"limit cpus", toKnow, "2 whole cores", "binds code to; 1.5 was asked for", "cgroup v2"}}, ""},
		{"no controllers, one user namespace for all", func(e *fakeEngine) {
			e.facts.OwnUsers,
				e.facts.Enforces = false, runtime.Enforced{}
		}, nil, true,
			[]row{{"users", toKnow, "share", "", ""}, {"limit pids", toKnow, "", "watched by the guest", "Delegate="},
				{"limit cpus", fine, "all cores", "not kept", ""}}, ""},
		{"a cluster", func(e *fakeEngine) {
			e.facts.Cluster, e.facts.Rootless, e.facts.Enforces.PIDs, e.facts.OwnUsers = true, false, false, false
			e.facts.Seccomp = "engine"
			e.looked = func(e *fakeEngine) { e.facts.Lacks = []string{"its nodes refuse user namespaces"} }
		}, nil, true,
			[]row{{"rootless", toKnow, "nodes run the containers", "", "RuntimeClass"},
				{"seccomp", toKnow, "default filter", "", "MCP_BRIDGE_SECCOMP=localhost/NAME"},
				{"lacks", toKnow, "its nodes refuse user namespaces", "", ""},
				{"limit pids", toKnow, "", "watched by the guest", "podPidsLimit"},
				{"NetworkPolicy", fine, "could not reach the API server", "", ""}}, ""},
		{"a cluster whose network keeps no policy", func(e *fakeEngine) { e.facts.Cluster, e.reached = true, true },
			nil, true,
			[]row{{"NetworkPolicy", toKnow, "this cluster's network keeps none", "only the guest's own filter",
				"kubectl apply -k"}}, ""},
		{"a cluster without room for one more pod", func(e *fakeEngine) {
			e.facts.Cluster, e.tryErr = true, errors.New("no node took the pod")
		}, nil, true, []row{{"NetworkPolicy", toKnow, "no node took the pod", "may be all", ""}}, ""},
		{"limits that bite", func(*fakeEngine) {}, map[string]string{"MCP_BRIDGE_CPUS": "2"}, true,
			[]row{{"limit memory", fine, "512 MiB", "kept by the engine", ""},
				{"limit cpus", fine, "2 cores", "kept by the engine", ""},
				{"limit time", fine, "2m0s at most", "kept by the bridge", ""}}, ""},
		{"limits beyond the machine", func(*fakeEngine) {},
			map[string]string{"MCP_BRIDGE_CPUS": "99999", "MCP_BRIDGE_MEMORY": "999t"}, true,
			[]row{{"limit cpus", toKnow, "99999 cores", "it limits nothing: this machine has only",
				"lower MCP_BRIDGE_CPUS"}, {"limit memory", memoryBeyond, "MiB", "", ""}}, ""},
		{"limits beyond another machine", func(e *fakeEngine) { e.facts.Remote = true },
			map[string]string{"MCP_BRIDGE_CPUS": "99999", "MCP_BRIDGE_MEMORY": "999t"}, true,
			[]row{{"limit cpus", fine, "", "", ""}, {"limit memory", fine, "", "", ""}}, ""},
		{"orphans", func(e *fakeEngine) {
			e.orphans = []runtime.Orphan{{ID: "0123456789abcdef", Name: "odd_name", Owner: dead,
				Created: time.Now().Add(-3 * time.Hour), Running: true}}
		}, nil, true, []row{{"orphans", toKnow, "0123456789ab (odd_name), 3 hours old, running, owner pid 4711",
			"removed beside the run below", "doctor --reap"}}, ""},
		{"orphans that can't be looked for", func(e *fakeEngine) { e.reapErr = errors.New("busy") }, nil, true,
			[]row{{"orphans", toKnow, "busy", "", "doctor --reap"}}, ""},
		{"a pinned image", func(*fakeEngine) {}, map[string]string{"MCP_BRIDGE_IMAGE": "python@sha256:" +
			strings.Repeat("2", 64)}, true,
			[]row{{"image", fine, "digest sha256:222", "pinned", ""},
				{"settings", fine, "MCP_BRIDGE_IMAGE=python@", "", ""}}, ""},
		{"an environment", func(e *fakeEngine) {
			e.listed = []runtime.ListedImage{builtData(e.image.ID, time.Now().Add(-3*time.Hour))}
			e.listed[0].Labels["io.mcp-bridge.environment.lock"] = dataLock(t)
		}, nil, true,
			[]row{{"environments", fine, "env-data:latest, 275.4MB, 2 packages, 3 hours old, layer 0123456789ab", "",
				""}}, ""},
		{"an environment whose image has another Python now", func(e *fakeEngine) {
			e.listed = []runtime.ListedImage{builtData("sha256:older", time.Now())}
		}, nil, true,
			[]row{{"environments", toKnow, "its base image is another one now", "compiles all of it again",
				"mcp-bridge env build data"}}, ""},
		{"an unknown environment", func(*fakeEngine) {}, map[string]string{"MCP_BRIDGE_ENV": "dtaa"}, false,
			[]row{{"run", broken, `there is no environment "dtaa"`, "no code can be run", "env add dtaa"}},
			"guest filter"},
		{"a password in a URL", func(*fakeEngine) {},
			map[string]string{"MCP_BRIDGE_RUNTIME": "tcp://me:hunter2@host:1"}, true,
			[]row{{"settings", fine, "tcp://me:xxxxx@host:1", "", ""}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := healthy()
			tt.change(e)
			second := healthy()
			second.err = absent
			d := &doctor{makeImage: func(*parts, context.Context, runtime.Progress) error {
				return &image.Error{Err: errors.New("mmdebstrap is not installed"),
					Next: "sudo apt-get install mmdebstrap"}
			}}
			if works := examineWith(t, d, []*fakeEngine{e, second}, tt.env); works != tt.works {
				t.Errorf("works is %v, want %v", works, tt.works)
			}
			for _, want := range tt.want {
				if !find(d.rows, want) {
					t.Errorf("there is no row like %+v", want)
				}
			}
			for _, r := range d.rows {
				if r.Check == tt.gone || strings.Contains(r.Found, "hunter2") || (r.Status == broken) &&
					(tt.works || r.Means == "" && r.Check != "run") {
					t.Errorf("there is the row %+v", r)
				}
				if r.Status == broken && r.Fix == "" && tt.name != "an engine that doesn't start" {
					t.Errorf("nothing is said to mend %+v", r)
				}
			}
			if t.Failed() {
				for _, r := range d.rows {
					t.Logf("%+v", r)
				}
			}
		})
	}
}

// TestDoctorMakesImage: where no registry is reached, an image that is made does.
func TestDoctorMakesImage(t *testing.T) {
	e, made := healthy(), 0
	e.missing, e.pullErr = true, errors.New("dial tcp: no such host")
	d := &doctor{makeImage: func(p *parts, _ context.Context, progress runtime.Progress) error {
		made++
		e.missing = false
		progress("making")
		return nil
	}}
	if !examineWith(t, d, []*fakeEngine{e}, nil) || made != 1 ||
		!find(d.rows, row{"image", toKnow, "registry can't be reached", "made now", ""}) ||
		!find(d.rows, row{"run", fine, "", "run_python works", ""}) {
		t.Errorf("made %d, got %+v", made, d.rows)
	}
}

func TestDoctorNamesTheOtherEngine(t *testing.T) {
	second := healthy()
	second.facts.Engine = "docker"
	d := &doctor{}
	if !examineWith(t, d, []*fakeEngine{healthy(), second}, nil) ||
		!find(d.rows, row{"engine docker", fine, "docker 5.4.2", "passed over", "MCP_BRIDGE_RUNTIME=docker"}) {
		t.Errorf("got %+v", d.rows)
	}
}

func TestDoctorNamesServers(t *testing.T) {
	d := &doctor{root: true, parts: &parts{catalog: discovery.Catalog{Problems: []discovery.Problem{{Server: "s",
		Reason: "it is disabled", Next: "enable it"}}}}}
	if !examineWith(t, d, []*fakeEngine{healthy()}, nil) ||
		!find(d.rows, row{"servers", toKnow, "it is disabled", "", "enable it"}) ||
		!find(d.rows, row{"user", toKnow, "root", "", "ordinary user"}) {
		t.Errorf("got %+v", d.rows)
	}
}

// TestDoctorWithoutWatchdog: it goes on, and doesn't call it good.
func TestDoctorWithoutWatchdog(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("MCP_BRIDGE_RUNTIME", "podman")
	d := &doctor{print: func(row) {}, progress: func(string) {},
		watchdog: func(*slog.Logger) (*guard.Guard, error) { return nil, errors.New("no more processes") }}
	if d.visit(t.Context(), &app{io: &terminal.Streams{Err: terminal.New(io.Discard)}}) ||
		!find(d.rows, row{"watchdog", broken, "no more processes", "doesn't start without it", "debug"}) ||
		!find(d.rows, row{"engine podman", broken, "", "", "install"}) {
		t.Errorf("got %+v", d.rows)
	}
}

var varying = regexp.MustCompile(`answered in [^"]+|\d+ ms|Python \d\S+|"3\.\d+\.\d+"`)

// TestDoctorJSON compares the document for programs with testdata/doctor.json.
func TestDoctorJSON(t *testing.T) {
	second := healthy()
	second.err = &runtime.UnavailableError{Engine: "docker", Err: errors.New("nothing listens"),
		Next: "start it"}
	d := &doctor{}
	works := examineWith(t, d, []*fakeEngine{healthy(), second}, nil)
	var b bytes.Buffer
	must(t, terminal.JSON(&b, report{"v1", works, d.rows}))
	got := varying.ReplaceAllString(b.String(), "VARIES")
	path := filepath.Join("testdata", "doctor.json")
	if *update {
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the document differs (-update writes it):\n%s", diff)
	}
	var r report
	if err := json.Unmarshal(b.Bytes(), &r); err != nil || !r.Works || len(r.Rows) != len(d.rows) {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestAge: the two clocks may disagree by any amount.
func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		created time.Time
		want    string
	}{
		{now.Add(-5 * time.Second), "5 seconds old"},
		{now.Add(-90 * time.Second), "about a minute old"},
		{now.Add(-26 * time.Hour), "26 hours old"},
		{now.AddDate(0, 0, -12), "12 days old"},
		{now.AddDate(20, 0, 0), "of unknown age"},
		{time.Time{}, "of unknown age"},
	} {
		if got := age(tt.created, now); got != tt.want {
			t.Errorf("age of %v is %s, want %s", tt.created, got, tt.want)
		}
	}
}

// TestReapCommand shows what it removes.
func TestReapCommand(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // this machine's bridges are their own affair
	t.Setenv("TMPDIR", t.TempDir())
	for _, asJSON := range []bool{false, true} {
		e := healthy()
		e.orphans = []runtime.Orphan{{ID: "0123456789abcdef", Name: "odd_name", Owner: runtime.Owner{PID: 4711}}}
		p := &parts{driver: detect.New(detect.Config{Candidates: []detect.Candidate{{Name: "podman",
			Open: func() runtime.Driver { return e }}}})}
		var b bytes.Buffer
		a := &app{io: &terminal.Streams{Out: terminal.New(&b)}}
		for i, want := range []string{"4711", `(?s)nothing of a dead|"removed": \[\]`} {
			b.Reset()
			if err := reap(t.Context(), a.io.Out, p, asJSON); err != nil ||
				!regexp.MustCompile(want).MatchString(b.String()) ||
				!slices.Equal(e.removed, []string{"0123456789abcdef"}) {
				t.Errorf("time %d: got %v, %s; removed %v", i, err, b.String(), e.removed)
			}
			if asJSON && !json.Valid(b.Bytes()) {
				t.Errorf("no JSON: %s", b.String())
			}
		}
		if err := p.driver.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDoctorBadProfile: a seccomp profile that can't be used has one row, which says so.
func TestDoctorBadProfile(t *testing.T) {
	d := &doctor{print: func(row) {}, parts: &parts{cfg: settings.Settings{Seccomp: filepath.Join(t.TempDir(),
		"none.json")}}}
	d.settings(func(string) (string, bool) { return "", false }, true)
	for _, r := range d.rows {
		if strings.Contains(r.Found, "none.json") {
			t.Errorf("got %+v before it is found out", r)
		}
	}
}

// TestDoctorOfUnwritableState: a row says that approvals can't be kept, and what to do. The last
// row doesn't pass over that.
func TestDoctorOfUnwritableState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("XDG_STATE_HOME", file)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	d := &doctor{print: func(row) {}, parts: &parts{log: slog.New(slog.DiscardHandler)}}
	if !d.policyFollowed() || len(d.rows) != 1 || d.rows[0].Check != "approvals" || d.rows[0].Status != toKnow ||
		!strings.Contains(d.rows[0].Fix, filepath.Join(file, "mcp-bridge")) {
		t.Errorf("got %+v", d.rows)
	}
	if works := d.works(); !strings.Contains(works, "held stay so: see approvals") {
		t.Errorf("it means that %s", works)
	}
}

// TestNetworkRow: what code finds in a pod is said as what stands between it and the network.
func TestNetworkRow(t *testing.T) {
	for _, tt := range []struct {
		printed string
		want    row
	}{
		{"interface eth0\n", row{"network", fine, "no socket of the internet", "the guest's own filter", ""}},
		{"socket AF_INET\nsocket AF_INET6\n", row{"network", fine, "no interface but lo", "reaches nothing", ""}},
		{"socket AF_INET\ninterface eth0\n", row{"network", toKnow, "sockets of AF_INET beside eth0",
			"only a NetworkPolicy", "ctypes"}},
	} {
		if got := networkRow(tt.printed); !find([]row{got}, tt.want) {
			t.Errorf("%q: got %+v", tt.printed, got)
		}
	}
}
