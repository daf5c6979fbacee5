package runtimetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

//go:embed calls.py
var callsPy string

//go:embed probe.py
var probePy string

// Probe is a program that prints, as JSON, what the place it runs in looks like from inside: a
// Report. Its arguments are those of Outside; without arguments, it tries no particular port and
// socket.
var Probe = callsPy + "\n\n" + probePy

// Report is what Probe prints.
type Report struct {
	UID, GID   []int
	Groups     []int
	Caps       map[string]string
	NoNewPrivs string
	Seccomp    string
	Mounts     []Mount
	Writable   []string // directories in which a file could be made
	Executable []string // those of Writable from which a program could be run
	Namespaces map[string]string
	Interfaces []string
	Env        map[string]string
	Hostname   string
	TCP        string // what came of connecting to a listener of the host
	Abstract   string // the same, an abstract socket
	Devices    []string
	Rlimits    map[string][]int64
	Sizes      map[string]int64

	Masked      map[string]*int   // how much can be read of what engines mask; null: nothing, by an error
	Fixed       map[string]string // what comes of opening what must not be written to
	Cgroups     map[string]string // the same of control groups
	CgroupPaths []string
	// limits of memory, and of it with swap, as the control group of "v1" or "v2" has them
	Memory    map[string][]*string
	Swaps     *string
	UIDMap    *string
	Label     *string // of AppArmor or SELinux
	LowersOOM bool    // it can have the kernel spare it
	Resolves  string  // what comes of looking up a name on the network
	Processes []int
	IPC       *string // System V shared memory
	Disk      string  // what comes of making a disk's device and opening it
	Sockets   []string
	Setuid    map[string]map[string]string // what setuid programs are told of themselves

	Calls   map[string]*string  `json:"-"` // null: the call went through
	Classes map[string][]string `json:"-"` // names of Calls by what they reach
}

// Mount is a line of /proc/self/mountinfo, proc(5).
type Mount struct {
	Root, Path, Type, Source string
	Options, Super           []string
}

// ParseReport reads what Probe printed.
func ParseReport(t *testing.T, out string) Report {
	t.Helper()
	var all struct {
		Report
		Tried map[string]map[string]*string `json:"calls"`
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("the probe did not report: %v\n%s", err, out)
	}
	r := all.Report
	r.Calls, r.Classes = map[string]*string{}, map[string][]string{}
	for class, members := range all.Tried {
		maps.Copy(r.Calls, members)
		r.Classes[class] = slices.Sorted(maps.Keys(members))
	}
	return r
}

// Outside opens what a container must not reach: a TCP listener on the loopback and an abstract
// socket. It returns Probe's two arguments and lasts until the test is over.
func Outside(t *testing.T) (port, abstract string) {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	name := fmt.Sprintf("mcp-bridge-outside-%d", os.Getpid())
	unix, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close() })
	return fmt.Sprint(tcp.Addr().(*net.TCPAddr).Port), name
}

// LockDown looks from inside a container at everything that the design's security brief lists and
// an engine can give. Each property is a test of its own, since a table of them is printed for all
// engines.
func LockDown(t *testing.T, newTarget func(*testing.T) Target) {
	g := newTarget(t)
	facts, err := g.Driver.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	port, abstract := Outside(t)
	t.Setenv("MCP_BRIDGE_TEST_SECRET", "must-not-be-seen")
	spec := g.Spec(Probe, port, abstract)
	exit, out, errs := g.run(t, spec)
	if exit.Code != 0 {
		t.Fatalf("the probe ended with code %d: %s", exit.Code, errs)
	}
	in := &inspection{Report: ParseReport(t, out), spec: spec, facts: &facts,
		env: append([]string{"PATH", "HOME", "LANG"}, engineEnv...), differs: differs(facts)}
	maps.Copy(in.differs, g.Differs)
	in.check(t, properties)
	in.check(t, engineProperties)
	in.check(t, []property{
		{"each container has a user namespace of its own", func(in *inspection) { ownUsers(t, g, in) }},
		{"memory is limited", func(in *inspection) { memoryBites(t, g, in) }},
		{"processes are limited", func(in *inspection) { pidsBite(t, g, in) }},
		{"files are limited", func(in *inspection) { tmpfsBites(t, g, in) }},
	})
	t.Run("calls", func(t *testing.T) { in.checkCalls(t, facts.Seccomp == "strict") })
}

// CheckReport checks what must be so in every container, raw or with the guest in it. Env are the
// names that may be set.
func CheckReport(t *testing.T, r Report, s runtime.Spec, env []string) {
	t.Helper()
	(&inspection{Report: r, spec: s, env: env}).check(t, properties)
}

// inspection is a report, what it is to be measured by, and what is found of one property.
type inspection struct {
	Report
	spec    runtime.Spec
	facts   *runtime.Facts // nil where they aren't known
	env     []string
	differs map[string]string

	problems, notes []string
}

func (in *inspection) problem(format string, a ...any) {
	in.problems = append(in.problems, fmt.Sprintf(format, a...))
}

// note says what holds on this engine instead of the property, and isn't held against it.
func (in *inspection) note(format string, a ...any) {
	in.notes = append(in.notes, fmt.Sprintf(format, a...))
}

type property struct {
	name  string
	check func(*inspection)
}

func (in *inspection) check(t *testing.T, all []property) {
	t.Helper()
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			in.problems, in.notes = nil, nil
			p.check(in)
			for _, n := range in.notes {
				t.Logf("PROPERTY: %s", n)
			}
			told := map[string]bool{}
			for _, wrong := range in.problems {
				switch why, known := in.excuse(p.name, wrong); {
				case !known:
					t.Error(wrong)
				case !told[why]:
					told[why] = true
					t.Logf("PROPERTY: %s", why)
				}
			}
		})
	}
}

// excuse returns what there is instead, where a problem of a property is a known difference.
func (in *inspection) excuse(property, problem string) (why string, known bool) {
	if why, known = in.differs[property]; known {
		return why, true
	}
	for name, why := range in.differs {
		if text, ok := strings.CutPrefix(name, property+": "); ok && strings.Contains(problem, text) {
			return why, true
		}
	}
	return "", false
}
