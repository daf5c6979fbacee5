package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check everything a run needs, and say how to mend what is wrong",
		Long:  "Check everything a run needs, and say how to mend what is wrong.\nIt ends with code 0 only if a real run in a container has just worked.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withParts(cmd.Context(), slog.LevelWarn, func(ctx context.Context, p *parts) error {
				d := &doctor{app: a, parts: p}
				if !d.examine(ctx) {
					return exitError{exitUnavailable}
				}
				return nil
			})
		},
	}
}

// doctor prints one row for each thing it looks at.
type doctor struct {
	*app
	*parts
}

// Marks of a row: fine; something to know; something that keeps code from running.
const (
	fine   = "ok  "
	toKnow = "note"
	broken = "FAIL"
)

func (d *doctor) row(mark, what, found, next string) {
	fmt.Fprintf(d.stdout, "%s  %-10s %s\n", mark, what, found)
	if next != "" {
		fmt.Fprintf(d.stdout, "      %-10s next: %s\n", "", next)
	}
}

// trouble is the row of an error, with its hint.
func (d *doctor) trouble(what string, err error) {
	var hinted interface{ Hint() string }
	next := ""
	if errors.As(err, &hinted) {
		next = hinted.Hint()
	}
	d.row(broken, what, err.Error(), next)
}

// examine looks at everything in the order in which a run needs it, and stops where going on makes no sense.
func (d *doctor) examine(ctx context.Context) bool {
	d.row(fine, "version", version(), "")
	d.configs()
	f, err := d.driver.Facts(ctx)
	if err != nil {
		d.trouble("engine", err)
		return false
	}
	d.engine(f)
	d.limits(f)
	ref, err := d.present(ctx)
	switch {
	case err != nil:
		d.trouble("image", err)
		return false
	case ref == "":
		d.row(toKnow, "image", d.cfg.images()[0]+" is not here yet; it is pulled now", "mcp-bridge image pull, or where no registry is reached: mcp-bridge image build")
	default:
		d.row(fine, "image", ref, "")
	}
	return d.tryRun(ctx)
}

func (d *doctor) configs() {
	c := d.catalog
	d.row(fine, "servers", fmt.Sprintf("%d that can be used (mcp-bridge servers lists them); files read: %d", len(c.Servers), len(c.Sources)), "")
	for _, p := range c.Problems {
		what := p.Source.String()
		if p.Server != "" {
			what = fmt.Sprintf("server %s in %s", p.Server, what)
		}
		d.row(toKnow, "servers", what+": "+p.Reason, p.Next)
	}
}

func (d *doctor) engine(f runtime.Facts) {
	d.row(fine, "engine", fmt.Sprintf("%s %s (API %s, %s) at %s", f.Engine, f.Version, f.APIVersion, f.OCIRuntime, f.Endpoint), "")
	if f.Rootless {
		d.row(fine, "rootless", "yes", "")
	} else {
		d.row(toKnow, "rootless", "no, and MCP_BRIDGE_ALLOW_ROOTFUL accepts that", "use podman as an ordinary user")
	}
	if os.Geteuid() == 0 {
		d.row(toKnow, "user", "this is root", "run mcp-bridge as an ordinary user")
	}
}

// limits says who keeps each limit: the engine by cgroup, or the guest, whose word is weaker.
func (d *doctor) limits(f runtime.Facts) {
	c := d.cfg
	cpus := "all cores"
	if c.CPUs > 0 {
		cpus = fmt.Sprintf("%g cores", c.CPUs)
	}
	d.row(fine, "limits", fmt.Sprintf("memory %d MiB, %d processes, %s, %v by default, %v at most",
		c.Memory>>20, c.PIDs, cpus, time.Duration(c.Timeout), time.Duration(c.MaxTimeout)), "")
	missing := sandbox.GuestLimits(f)
	if len(missing) == 0 {
		d.row(fine, "enforced", "memory, pids and cpus by the engine (cgroup v"+fmt.Sprint(f.CgroupVersion)+")", "")
		return
	}
	next := "delegate the controllers to your user: see systemd's user@.service, Delegate="
	if f.CgroupVersion == 1 {
		next = "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1), where a rootless engine can"
	}
	d.row(toKnow, "enforced", fmt.Sprintf("%s here does not enforce %s. The guest limits memory (RLIMIT_AS for each process, and the sum watched) and counts processes, ten times a second:"+
		" enough for mistakes, not against code that means harm; cpus are not limited", f.Engine, strings.Join(missing, ", ")), next)
}

// tryRun runs code: what works here works for run_python.
func (d *doctor) tryRun(ctx context.Context) bool {
	begin := time.Now()
	r, err := d.bridge.RunDirect(ctx, bridge.Direct{
		Code:     "import sys; print(sys.version.split()[0])",
		Servers:  []string{},
		Progress: func(line string) { d.row(toKnow, "image", line, "") },
	})
	switch {
	case err != nil:
		d.trouble("run", err)
		return false
	case r.Result.Status != sandbox.StatusOK:
		d.row(broken, "run", fmt.Sprintf("%s: %s %s", r.Result.Status, r.Result.Message, r.Result.Stderr()), "try another image: MCP_BRIDGE_IMAGE")
		return false
	}
	if r.Result.Note != "" && !r.Result.Unfiltered {
		d.row(toKnow, "seccomp", r.Result.Note+"; the guest's own filter holds", "take seccomp_profile out of containers.conf")
	} else if r.Result.Unfiltered {
		d.row(toKnow, "seccomp", "only the engine's own profile holds: the image's Python can't install the guest's filter", "use an image whose Python has ctypes, on x86_64 or aarch64")
	} else {
		d.row(fine, "seccomp", "the guest's own filter, on top of the engine's", "")
	}
	took := r.Result.Took
	d.row(fine, "run", fmt.Sprintf("Python %s in a new container: ready after %d ms, ran %d ms, gone after %d ms",
		strings.TrimSpace(r.Result.Stdout()), took.Start.Milliseconds(), took.Run.Milliseconds(), time.Since(begin).Milliseconds()), "")
	return true
}
