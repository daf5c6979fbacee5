package sandbox

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestEnforcements: what doctor says of a limit is what a run is given.
func TestEnforcements(t *testing.T) {
	cfg := Config{Limits: runtime.Limits{Memory: 512 << 20, PIDs: 128, CPUs: 1.5, NoFile: 1024, Shm: 16 << 20},
		OutputLimit: 256 << 10, ArtifactLimit: 1 << 20, MaxCalls: 1000, StartTimeout: time.Second,
		MaxTimeout: time.Minute}
	all := runtime.Enforced{Memory: true, PIDs: true, CPUs: true}
	tests := []struct {
		name  string
		facts runtime.Facts
		cpus  float64
		want  map[string]EnforcedBy
		rlim  map[string]int64
		watch entrypoint.Watch
		cores int
	}{
		{"an engine that keeps all", runtime.Facts{Enforces: all}, 1.5,
			map[string]EnforcedBy{"memory": ByEngine, "pids": ByEngine, "cpus": ByEngine}, nil, entrypoint.Watch{}, 0},
		{"one that keeps none", runtime.Facts{}, 1.5,
			map[string]EnforcedBy{"memory": ByWatch, "pids": ByWatch, "cpus": ByAffinity},
			map[string]int64{"as": 512<<20 + asSlack}, entrypoint.Watch{MemoryBytes: 512 << 20, Processes: 128}, 2},
		{"users of its own", runtime.Facts{OwnUsers: true, Enforces: runtime.Enforced{Memory: true}}, 1,
			map[string]EnforcedBy{"memory": ByEngine, "pids": ByRlimit, "cpus": ByAffinity},
			map[string]int64{"nproc": 128}, entrypoint.Watch{}, 1},
		{"a kernel of its own", runtime.Facts{OwnKernel: true, Enforces: all}, 1.5,
			map[string]EnforcedBy{"memory": ByEngine, "pids": ByRlimit, "cpus": ByEngine},
			map[string]int64{"nproc": 128}, entrypoint.Watch{}, 0},
		{"a kernel of its own, rootless", runtime.Facts{OwnKernel: true}, 2,
			map[string]EnforcedBy{"memory": ByWatch, "pids": ByRlimit, "cpus": ByNone},
			map[string]int64{"as": 512<<20 + asSlack, "nproc": 128},
			entrypoint.Watch{MemoryBytes: 512 << 20}, 2},
		{"all cores", runtime.Facts{}, 0, map[string]EnforcedBy{"memory": ByWatch, "pids": ByWatch, "cpus": ByNone},
			map[string]int64{"as": 512<<20 + asSlack}, entrypoint.Watch{MemoryBytes: 512 << 20, Processes: 128}, 0},
	}
	always := map[string]EnforcedBy{"nofile": ByRlimit, "core": ByRlimit, "/ipc": ByEngine, "/tmp": ByEngine,
		"/workspace": ByEngine, "/dev/shm": ByEngine,
		"output": ByBridge, "files handed over": ByBridge, "calls": ByBridge, "time": ByBridge}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := cfg
			cfg.Limits.CPUs = tt.cpus
			got := map[string]EnforcedBy{}
			for _, k := range Enforcements(tt.facts, cfg) {
				got[k.Limit] = k.By
				if k.Value == "" || (k.By == ByWatch || k.By == ByNone) && k.Means == "" {
					t.Errorf("%+v says too little", k)
				}
			}
			for k, v := range always {
				tt.want[k] = v
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("keepers (-want +got):\n%s", diff)
			}
			o := (&Sandbox{cfg: cfg}).options(Request{}, tt.facts)
			want := map[string]int64{"core": 0, "nofile": 1024}
			for k, v := range tt.rlim {
				want[k] = v
			}
			if diff := cmp.Diff(want, o.Rlimits); diff != "" || o.Watch != tt.watch || o.Cores != tt.cores {
				t.Errorf("options: watch %+v, cores %d, rlimits (-want +got):\n%s", o.Watch, o.Cores, diff)
			}
		})
	}
}

func TestExhausted(t *testing.T) {
	n := &session{sandbox: &Sandbox{cfg: Config{Limits: runtime.Limits{PIDs: 77, NoFile: 99, Shm: 5 << 20}}}}
	tests := []struct {
		name string
		e    Failure
		want string
	}{
		{"a full disk", Failure{Type: "OSError", Message: "[Errno 28] No space left on device"},
			"/workspace (128 MiB) and /dev/shm (5 MiB)"},
		{"descriptors", Failure{Type: "OSError", Message: "[Errno 24] Too many open files: 'x'"}, "99 files"},
		{"threads", Failure{Type: "RuntimeError", Message: "can't start new thread"}, "77 processes and threads"},
		{"forks", Failure{Type: "BlockingIOError", Message: "[Errno 11] Resource temporarily unavailable",
			Traceback: "    os.fork()"}, "MCP_BRIDGE_PIDS"},
		{"a mapping", Failure{Type: "OSError", Message: "[Errno 12] Cannot allocate memory"}, "0 MiB of memory"},
		{"a lock", Failure{Type: "BlockingIOError", Message: "[Errno 11] Resource temporarily unavailable",
			Traceback: "    fcntl.flock(f)"}, ""},
		{"another", Failure{Type: "ValueError", Message: "28"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := n.exhausted(&tt.e)
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestUnasked: gVisor's own devices are no reason to run nothing; another engine's are.
func TestUnasked(t *testing.T) {
	extra := []string{"/dev/fuse", "/dev/net", "/hostdir"}
	if got := unasked(extra, runtime.Facts{OwnDevices: []string{"/dev/fuse", "/dev/net"}}); !slices.Equal(got,
		[]string{"/hostdir"}) {
		t.Errorf("with runsc: %v", got)
	}
	if got := unasked(extra, runtime.Facts{OCIRuntime: "runc"}); !slices.Equal(got, extra) {
		t.Errorf("with runc: %v", got)
	}
}
