package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
	"github.com/mcp-bridge/mcp-bridge/runtime/seccomp"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func doctorCmd(a *app) *cobra.Command {
	var asJSON, onlyReap bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything a run needs, and say how to mend what is wrong",
		Long: "Check everything a run needs, and say how to mend what is wrong.\n" +
			"Where the image is missing it is pulled, or made from packages where no registry is reached.\n" +
			"It ends with code 0 only if a real run in a container has just worked, and with 69 otherwise.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if onlyReap {
				return withParts(cmd.Context(), a.io.Err, once, func(ctx context.Context,
					p *parts) error {
					return reap(ctx, a.io.Out, p, asJSON)
				})
			}
			return a.doctor(cmd.Context(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document instead of the table")
	cmd.Flags().BoolVar(&onlyReap, "reap", false, "show and remove what dead bridges have left, and "+
		"nothing else")
	return cmd
}

func (a *app) doctor(ctx context.Context, asJSON bool) error {
	d := &doctor{progress: a.io.Say, print: func(row) {}, watchdog: startWatchdog,
		makeImage: (*parts).buildImage,
		root:      os.Geteuid() == 0, cut: func() bool { return ctx.Err() != nil }}
	if !asJSON {
		s := a.io.Out.Screen()
		d.print = func(r row) { r.show(s) }
	}
	works := d.visit(ctx, a)
	if d.cut() {
		d.row(row{"interrupted", toKnow, "not everything was checked", "", ""})
	}
	if asJSON {
		if err := terminal.JSON(a.io.Out, report{version(), works, d.rows}); err != nil {
			return err
		}
	}
	if !works {
		return exit.With(exit.Unavailable)
	}
	return nil
}

// doctor makes one row for each thing it looks at.
type doctor struct {
	*parts
	print    func(row)
	progress runtime.Progress // of what takes long
	watchdog func(*slog.Logger) (*guard.Guard, error)
	// makeImage makes one where no registry is reached.
	makeImage func(*parts, context.Context, runtime.Progress) error
	root      bool        // this process is root's
	cut       func() bool // the user has ended it; nil means never
	rows      []row
}

// say makes a row, unless the user has ended the command: what fails then fails by that.
func (d *doctor) say(s status, check, found, means, fix string) {
	if d.cut == nil || !d.cut() {
		d.row(row{check, s, found, means, fix})
	}
}

func (d *doctor) row(r row) {
	d.rows = append(d.rows, r)
	d.print(r)
}

// trouble makes the row of an error that keeps code from running.
func (d *doctor) trouble(check string, err error, means string) {
	fix := text.Hint(err)
	if fix == "" {
		fix = "run it again with MCP_BRIDGE_LOG_LEVEL=debug"
	}
	d.say(broken, check, err.Error(), means, fix)
}

// visit makes the parts itself, since what can go wrong there is worth a row too, and examines
// them.
func (d *doctor) visit(ctx context.Context, a *app) bool {
	d.say(fine, "version", version(), "", "")
	cfg, err := settings.Read()
	if err != nil {
		d.say(broken, "settings", err.Error(), "no other command that reads the settings works",
			"correct the variable; mcp-bridge serve --help lists them all")
		return false
	}
	log := cfg.Logger(a.io.Err, slog.LevelWarn)
	d.parts = &parts{cfg: cfg, log: log, catalog: scan(cfg, log)}
	defer func() {
		if err := d.close(); err != nil {
			d.log.Error("not everything could be ended", "err", err)
		}
	}()
	ok := d.files()
	d.settings(os.LookupEnv, ok)
	ok = d.policyFollowed() && ok
	if d.guard, err = d.watchdog(d.log); err != nil {
		d.trouble("watchdog", err,
			"mcp-bridge doesn't start without it: nothing would end what a killed bridge leaves behind")
		ok = false
	} else {
		d.say(fine, "watchdog", "started", "what a killed bridge leaves behind is ended", "")
	}
	if d.driver, err = newDriver(cfg, d.guard, d.log); err == nil {
		err = d.assemble(once)
	}
	switch {
	case errors.As(err, new(exit.UsageError)):
		d.say(broken, "settings", err.Error(), "no code can be run", "correct the variable, or unset it")
		return false
	case err != nil:
		d.trouble("settings", err, "no code can be run")
		return false
	}
	return d.examine(ctx) && ok
}

const approvalsCheck = "approvals"

// policyFollowed reports whether the policy, if there is one, doesn't keep code from running.
func (d *doctor) policyFollowed() bool {
	d.policy, d.broken = d.cfg.ReadPolicy()
	a := approvals.New(approvalsConfig(d.log))
	if err := a.Writable(); err != nil {
		d.say(toKnow, approvalsCheck, err.Error(),
			"what you approve isn't kept; once code was run, servers are held", text.Hint(err))
	}
	d.trustPolicy(a)
	switch {
	case d.broken != nil:
		d.trouble("policy", d.broken, "no code is run")
	case d.policy.Path() != "":
		d.say(fine, "policy", d.policy.Path(), "it is followed", "")
	}
	return d.broken == nil
}

// settings shows which variables are set, if none is known to be wrong, and what loosens the
// lock-down.
func (d *doctor) settings(lookup func(string) (string, bool), right bool) {
	var set []string
	for _, name := range settings.Variables() {
		if v, ok := lookup(name); ok {
			if settings.IsURL(v) {
				v = runtime.Redacted(v)
			}
			set = append(set, name+"="+v)
		}
	}
	if len(set) == 0 {
		set = []string{"all as they come"}
	}
	if right {
		d.say(fine, "settings", strings.Join(set, " "), "", "")
	}
	if d.cfg.AllowRootful {
		d.say(toKnow, "settings", "MCP_BRIDGE_ALLOW_ROOTFUL is set",
			"a flaw in a rootful engine would hand over the machine", "unset it, and use podman as an ordinary user")
	}
	// one that can't be used has a row of its own
	if _, err := d.cfg.Filter(); err == nil && d.cfg.Seccomp != seccomp.Strict {
		d.say(toKnow, "settings", "MCP_BRIDGE_SECCOMP="+d.cfg.Seccomp,
			"the engine's filter of system calls is not the strict one", "unset it")
	}
}

// files shows whether the directories of the user's files can be used, and is false where serve
// doesn't start with them.
func (d *doctor) files() bool {
	err := d.cfg.CheckFiles(func(setting, dir string, err error) {
		check := strings.ToLower(setting)
		if err == nil {
			d.say(fine, check, dir, "", "")
			return
		}
		d.say(toKnow, check, err.Error(), settings.FilesMean[setting],
			"mend that, or name another directory with MCP_BRIDGE_"+setting)
	})
	if err != nil {
		d.say(broken, "settings", err.Error(), "serve doesn't start", "correct the variable, or unset it")
	}
	return err == nil
}

// examine looks at everything in the order in which a run needs it, and stops where going on makes
// no sense.
func (d *doctor) examine(ctx context.Context) bool {
	d.servers()
	f, ok := d.engines(ctx)
	if !ok {
		return false
	}
	var image runtime.Image
	if f.Cluster { // its nodes tell what they give once they have had a pod
		if image, ok = d.image(ctx); !ok {
			return false
		}
		if after, err := d.driver.Facts(ctx); err == nil {
			f = after
		}
	}
	d.walls(f)
	d.limits(f)
	d.orphans(ctx)
	if !f.Cluster {
		if image, ok = d.image(ctx); !ok {
			return false
		}
	}
	d.packages(ctx)
	if !d.tryRun(ctx) {
		return false
	}
	if f.Cluster {
		d.network(ctx, image)
	}
	return true
}

// packages makes a row for each environment that is built, and for settings that can't be read.
func (d *doctor) packages(ctx context.Context) {
	const check, ownModules = "environments", "code can import Python's own modules only"
	e := d.environments()
	built, err := e.List(ctx)
	if err != nil {
		d.say(toKnow, check, err.Error(), ownModules, "mcp-bridge env list")
		return
	}
	if len(built) == 0 {
		next := "mcp-bridge env build data"
		if settings.IsCluster(d.cfg.Runtime) {
			next = "push data, and name it: docs/kubernetes.md"
		}
		d.say(fine, check, "none is built", ownModules, next)
	}
	for _, env := range built {
		if env.Outdated == "" {
			d.say(fine, check, environmentLine(env, time.Now()), "", "")
			continue
		}
		d.say(toKnow, check, environmentLine(env, time.Now())+": "+env.Outdated,
			"it is used as it is, with the Python that it was built for; a new build compiles all of it again",
			"mcp-bridge env build "+env.Name)
	}
	for _, known := range e.Definitions() {
		if known.Err != nil {
			d.say(toKnow, check, known.Err.Error(), "it can't be built", "correct the file")
		}
	}
}

func (d *doctor) servers() {
	c := d.catalog
	d.say(fine, "servers", fmt.Sprintf("%d that can be used (mcp-bridge servers lists them); files read: %d",
		len(c.Servers), len(c.Sources)), "", "")
	for _, p := range c.Problems {
		what := p.Source.String()
		if p.Server != "" {
			what = fmt.Sprintf("server %s in %s", p.Server, what)
		}
		d.say(toKnow, "servers", what+": "+p.Reason, "code can't call it", p.Next)
	}
}

// image makes the row of the image that code runs in, and gets it where it is missing.
func (d *doctor) image(ctx context.Context) (runtime.Image, bool) {
	here, err := runtime.FirstImage(ctx, d.driver, d.cfg.Images())
	first := d.cfg.Images()[0]
	if err == nil && here.ID == "" && d.cfg.Pull != string(sandbox.PullNever) && !runtime.IsLocal(first) {
		d.say(toKnow, "image", first+" is not here yet", "it is pulled now", "")
	}
	_, i, err := d.sandbox.Look(ctx, d.progress)
	if gone, ok := errors.AsType[*runtime.ImageError](err); ok && gone.Unreached && d.makesImage() {
		d.say(toKnow, "image", err.Error(), "one like it is made now, from packages of Debian or Ubuntu", "")
		if err = d.makeImage(d.parts, ctx, d.progress); err == nil {
			_, i, err = d.sandbox.Look(ctx, d.progress)
		}
	}
	if unfit, ok := errors.AsType[*sandbox.UnfitError](err); ok {
		d.say(fine, "image", imageLine(unfit.Image), "", "")
		d.trouble("python", err, "no code can be run in it")
		return i, false
	}
	if err != nil {
		d.trouble("image", err, "no code can be run")
		return i, false
	}
	d.say(fine, "image", imageLine(i), pinMeaning(i), "")
	return i, true
}

// makesImage reports whether an image that is made here is used where none can be pulled.
func (d *doctor) makesImage() bool {
	return d.cfg.Image == "" && d.cfg.Pull == string(sandbox.PullMissing) && !settings.IsCluster(d.cfg.Runtime)
}

// imageLine names an image so that it can be told from every other.
func imageLine(i runtime.Image) string {
	if i.Digest != "" {
		return fmt.Sprintf("%s, digest %s", i.Ref, i.Digest)
	}
	return fmt.Sprintf("%s, id %s", i.Ref, i.ID)
}

func pinMeaning(i runtime.Image) string {
	if strings.Contains(i.Ref, "@") {
		return "pinned: no other image is used"
	}
	return ""
}

// tryRun runs code: what works here works for run_python.
func (d *doctor) tryRun(ctx context.Context) bool {
	begin := time.Now()
	r, err := d.bridge.RunDirect(ctx, bridge.Direct{Code: "import sys; print(sys.version.split()[0])",
		Servers: []string{}, Progress: d.progress})
	switch {
	case errors.As(err, new(*sandbox.UnfitError)):
		d.trouble("python", err, "no code can be run in it")
		return false
	case err != nil:
		d.trouble("run", err, "no code can be run")
		return false
	case r.Result.Status != sandbox.StatusOK:
		found := fmt.Sprintf("%s: %s %s", r.Result.Status, r.Result.Message, r.Result.Stderr())
		d.say(broken, "run", strings.TrimSpace(found), "no code can be run", "try another image: MCP_BRIDGE_IMAGE")
		return false
	}
	d.say(fine, "python", strings.TrimSpace(r.Result.Stdout()), "", "")
	const check = "guest filter"
	switch {
	case r.Result.Unfiltered:
		d.say(toKnow, check, "not installed: "+r.Result.Note, "only the engine's own filter holds",
			"use an image whose Python has ctypes, on x86_64 or aarch64")
	case r.Result.Note != "":
		d.say(toKnow, check, r.Result.Note, "the guest's own filter holds",
			"take seccomp_profile out of containers.conf")
	default:
		d.say(fine, check, "installed", "the guest's own filter of system calls holds, on top of the engine's", "")
	}
	took := r.Result.Took
	const works = "Python %s in a new container: ready after %d ms, ran %d ms, gone after %d ms"
	d.say(fine, "run", fmt.Sprintf(works, strings.TrimSpace(r.Result.Stdout()), took.Start.Milliseconds(),
		took.Run.Milliseconds(), time.Since(begin).Milliseconds()), d.works(), "")
	return true
}

// works returns what it means that a run has worked.
func (d *doctor) works() string {
	if slices.ContainsFunc(d.rows, func(r row) bool { return r.Check == approvalsCheck }) {
		return "run_python works, but servers that are held stay so: see " + approvalsCheck
	}
	return "run_python works"
}
