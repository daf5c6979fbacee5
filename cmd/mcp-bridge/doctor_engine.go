package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
	"github.com/mcp-bridge/mcp-bridge/runtime/seccomp"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// engines makes a row for each candidate, and returns false when none can be used.
func (d *doctor) engines(ctx context.Context) (runtime.Facts, bool) {
	f, err := d.driver.Survey(ctx)
	if rest, ok := errors.AsType[*runtime.UnavailableError](err); ok && rest.Dormant {
		d.say(toKnow, "engine "+rest.Engine, "at rest: "+detect.Reason(err),
			"it is started when code is run, and now", text.Hint(err))
		if err = d.driver.Start(ctx, d.progress); err == nil {
			f, err = d.driver.Facts(ctx)
		}
	}
	verdicts := d.driver.Verdicts()
	for _, v := range verdicts {
		d.verdict(v, err == nil)
	}
	if err != nil && (len(verdicts) != 1 || verdicts[0].Err == nil) {
		d.say(broken, "engine", "none can be used", "no code can be run", text.Hint(err))
	}
	return f, err == nil
}

// verdict makes the row of one candidate; works says whether some engine can be used.
func (d *doctor) verdict(v detect.Verdict, works bool) {
	check := "engine " + v.Name
	switch {
	case v.Chosen && v.Err == nil:
		d.say(fine, check, engineLine(v.Facts), fmt.Sprintf("chosen; it answered in %v",
			v.Took.Round(time.Millisecond)), "")
	case v.Err == nil:
		d.say(fine, check, engineLine(v.Facts), "passed over: another one is preferred",
			"to use it: MCP_BRIDGE_RUNTIME="+v.Name)
	case works:
		d.say(toKnow, check, detect.Reason(v.Err), "passed over; it isn't needed", "")
	default:
		d.say(broken, check, detect.Reason(v.Err), "it can't be used", text.Hint(v.Err))
	}
}

func engineLine(f runtime.Facts) string {
	where := ""
	if f.Cluster {
		where = ", on a cluster's nodes"
	} else if f.Desktop {
		where = ", in a virtual machine"
	} else if f.Remote {
		where = ", on another machine"
	}
	return fmt.Sprintf("%s %s (API %s) at %s%s", f.Engine, f.Version, f.APIVersion, f.Endpoint, where)
}

// walls makes the rows of the layers between code and the machine that the engine gives.
func (d *doctor) walls(f runtime.Facts) {
	const ordinary = "use podman as an ordinary user"
	switch {
	case f.Rootless:
		d.say(fine, "rootless", "yes", "a flaw in the engine would hand over this user's rights, not the machine",
			"")
	case f.Desktop:
		d.say(fine, "rootless", "no, in a virtual machine",
			"a flaw in the engine would hand over the virtual machine", "")
	case f.Cluster:
		d.say(toKnow, "rootless", "not told: the cluster's nodes run the containers",
			"a flaw in a node's runtime would hand over the node, with what else runs there",
			"name a RuntimeClass with a kernel of its own, such as gVisor's: MCP_BRIDGE_OCI_RUNTIME")
	default:
		d.say(toKnow, "rootless", "no, and MCP_BRIDGE_ALLOW_ROOTFUL accepts that",
			"a flaw in the engine would hand over the machine", ordinary)
	}
	if d.root {
		d.say(toKnow, "user", "this is root", "a flaw in mcp-bridge or in a server would hand over the machine",
			"run mcp-bridge as an ordinary user")
	}
	d.say(fine, "OCI runtime", cmp.Or(f.OCIRuntime, "the engine doesn't say"), "", "")
	d.seccomp(f)
	if len(f.LSM) > 0 {
		d.say(fine, "LSM", strings.Join(f.LSM, ", "), "it confines containers too", "")
	} else {
		d.say(toKnow, "LSM", "neither AppArmor nor SELinux is applied to containers",
			"one layer less; the others hold without it", "")
	}
	if f.OwnUsers {
		d.say(fine, "users", "each container has a user namespace of its own",
			"what one does to its user's limits is no other's concern", "")
	} else {
		d.say(toKnow, "users", "containers share a user namespace",
			"the kernel counts processes by user over all of them, so that count can't be a limit", "")
	}
	for _, l := range f.Lacks {
		d.say(toKnow, "lacks", l, "the rest of the lock-down holds", "")
	}
}

func (d *doctor) seccomp(f runtime.Facts) {
	const check = "seccomp"
	strict := "unset MCP_BRIDGE_SECCOMP, which then is strict"
	switch {
	case f.Cluster:
		strict = "put a profile onto each node, and name it: MCP_BRIDGE_SECCOMP=localhost/NAME"
	case d.cfg.Seccomp != seccomp.Engine:
		strict = "use an engine that takes a profile: docker, or podman on this machine"
	}
	switch f.Seccomp {
	case "":
		d.say(toKnow, check, "the engine sets no filter of system calls", "only the guest's own filter holds",
			"use an engine built with seccomp")
	case seccomp.Engine:
		d.say(toKnow, check, "the engine's default filter",
			"wider than what Python needs; the guest's own filter narrows it", strict)
	case seccomp.Strict:
		d.say(fine, check, "strict", "the engine denies every system call that Python doesn't need", "")
	default:
		d.say(fine, check, f.Seccomp, "the engine sets the filter of this file", "")
	}
}

// limits makes a row for each limit of a run.
func (d *doctor) limits(f runtime.Facts) {
	for _, k := range sandbox.Enforcements(f, d.sandboxConfig(once)) {
		r := limitRow(k, f)
		if less := beyond(d.cfg, k.Limit, f); less != "" {
			r = row{r.Check, toKnow, r.Found, less, "set a lower MCP_BRIDGE_" + strings.ToUpper(k.Limit)}
		}
		d.say(r.Status, r.Check, r.Found, r.Means, r.Fix)
	}
}

// orphans makes the row of what other bridges left behind. It is removed beside the run at the end,
// as beside every first run of a bridge.
func (d *doctor) orphans(ctx context.Context) {
	found, err := d.driver.Orphans(ctx, runtime.Self())
	switch {
	case err != nil:
		d.say(toKnow, "orphans", "containers of dead bridges can't be looked for: "+err.Error(),
			"some may be left", "mcp-bridge doctor --reap")
	case len(found) == 0:
		d.say(fine, "orphans", "no container of a dead bridge is left", "", "")
	default:
		var lines []string
		now := time.Now()
		for _, o := range found {
			lines = append(lines, orphanLine(o, now))
		}
		d.say(toKnow, "orphans", strings.Join(lines, "; "),
			"bridges that were killed left them; they are removed beside the run below", "mcp-bridge doctor --reap")
	}
}

// keptBy is for people what sandbox.EnforcedBy is.
var keptBy = map[sandbox.EnforcedBy]string{
	sandbox.ByEngine:   "kept by the engine",
	sandbox.ByBridge:   "kept by the bridge",
	sandbox.ByRlimit:   "kept by the kernel, set by the guest",
	sandbox.ByAffinity: "kept by the kernel, as cores that the guest binds code to",
	sandbox.ByWatch:    "watched by the guest",
	sandbox.ByNone:     "not kept",
}

// limitRow returns the row of a limit: how high it is, what keeps it, and how something stronger
// can.
func limitRow(k sandbox.Enforcement, f runtime.Facts) row {
	r := row{Check: "limit " + k.Limit, Status: fine, Found: k.Value, Means: keptBy[k.By]}
	if k.Means != "" {
		r.Means += "; " + k.Means
	}
	cgroups := k.Limit == "memory" || k.Limit == "pids" || k.Limit == "cpus"
	switch {
	case !cgroups || k.By != sandbox.ByWatch && k.By != sandbox.ByAffinity:
	case f.Cluster:
		r.Status, r.Fix = toKnow, "set podPidsLimit in the configuration of the nodes' kubelets"
	case f.CgroupVersion == 1:
		r.Status, r.Fix = toKnow, "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1), where a rootless "+
			"engine can keep it"
	default:
		r.Status, r.Fix = toKnow, "delegate the controller to your user, so that the engine can keep it: see "+
			"Delegate= in systemd's user@.service"
	}
	return r
}

// beyond returns that the machine has less than a limit; nothing where it has as much, or where
// containers run on another one.
func beyond(c settings.Settings, limit string, f runtime.Facts) string {
	total, known := settings.TotalMemory()
	cores := goruntime.NumCPU()
	switch {
	case f.Remote || f.Desktop:
	case limit == "memory" && known && int64(c.Memory) > total:
		return fmt.Sprintf("it limits nothing: this machine has only %d MiB", total>>20)
	case limit == "cpus" && c.CPUs > float64(cores):
		return fmt.Sprintf("it limits nothing: this machine has only %d cores", cores)
	}
	return ""
}

// looksOut prints which sockets of the internet code can open, and which interfaces it has beside
// lo.
const looksOut = `import os, socket
for name in ("AF_INET", "AF_INET6"):
    try:
        socket.socket(getattr(socket, name)).close()
        print("socket", name)
    except OSError:
        pass
for name in os.listdir("/sys/class/net"):
    if name != "lo":
        print("interface", name)
`

const guestsFilter = "the guest's own filter"

// networkRow returns what it means that looksOut has printed that.
func networkRow(printed string) row {
	found := map[string][]string{}
	for line := range strings.Lines(printed) {
		if what, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found[what] = append(found[what], name)
		}
	}
	sockets, interfaces := strings.Join(found["socket"], ", "), strings.Join(found["interface"], ", ")
	const check = "network"
	switch {
	case sockets == "":
		return row{check, fine, "code could open no socket of the internet", guestsFilter + " denies it", ""}
	case interfaces == "":
		return row{check, fine, "a pod has no interface but lo", "code reaches nothing outside its pod", ""}
	}
	return row{check, toKnow, "code could open sockets of " + sockets + " beside " + interfaces,
		"only a NetworkPolicy stands between code and what the cluster's pods reach",
		"use an image whose Python has ctypes, on x86_64 or aarch64"}
}

// network makes the rows of the two walls between code and the network that a pod has. Each is
// tried from inside.
func (d *doctor) network(ctx context.Context, image runtime.Image) {
	r, err := d.bridge.RunDirect(ctx, bridge.Direct{Code: looksOut, Servers: []string{}, Progress: d.progress})
	switch {
	case err == nil && r.Result.Status == sandbox.StatusOK:
		n := networkRow(r.Result.Stdout())
		d.say(n.Status, n.Check, n.Found, n.Means, n.Fix)
	case err == nil:
		err = fmt.Errorf("%s: %s %s", r.Result.Status, r.Result.Message, r.Result.Stderr())
		fallthrough
	default:
		d.say(toKnow, "network", "code could not look at it: "+err.Error(), "a NetworkPolicy may be all there is",
			"run it again")
	}
	const policy = "NetworkPolicy"
	reached, err := d.driver.Reaches(ctx, image.ID)
	switch {
	case err != nil:
		d.say(toKnow, policy, "a pod without the guest could not try: "+err.Error(),
			guestsFilter+" may be all that keeps code from the network", "run it again")
	case reached:
		d.say(
			toKnow,
			policy,
			"a pod without the guest reached the API server: this cluster's network keeps none, or "+
				"none is there",
			"only "+guestsFilter+" keeps code from the network",
			"kubectl apply -k packaging/kubernetes, in a cluster whose network keeps policies",
		)
	default:
		d.say(fine, policy, "holds: a pod without the guest could not reach the API server",
			"what was tried is kept from code also without "+guestsFilter, "")
	}
}

// status of a row.
type status string

const (
	fine   status = "ok"
	toKnow status = "note" // something to know that keeps nothing from working
	broken status = "fail" // something that keeps code from running
)

// row is one thing that was checked.
type row struct {
	Check  string `json:"check"`
	Status status `json:"status"`
	Found  string `json:"found"`
	Means  string `json:"means,omitempty"`
	Fix    string `json:"fix,omitempty"` // what to type or to change
}

// report is all of it, for programs.
type report struct {
	Version string `json:"version"`
	Works   bool   `json:"works"` // code can be run
	Rows    []row  `json:"rows"`
}

// show writes a row: its status, its name and, beside them, what there is to say.
func (r row) show(s terminal.Screen) {
	parts := []string{r.Found}
	if r.Means != "" {
		parts = append(parts, r.Means)
	}
	if r.Fix != "" {
		parts = append(parts, "next: "+r.Fix)
	}
	s.Entry(string(r.Status), r.Check, 16, strings.Join(parts, "\n"))
}
