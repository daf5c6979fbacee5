// Command bench measures the bridge as its users meet it: the real program over standard input and output, real rootless podman,
// each figure beside its raw baseline, taken in turns with it. docs/performance.md says what is measured and why so; `make bench`
// runs it. It is part of no product and fails on no figure: only when something didn't work.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // something could not be measured
	exitUsage  = 2
)

type options struct {
	bridge string
	parts  []string
	quick  bool
	json   string
	render string
	page   string
	calls  int
	load   time.Duration
	share  float64
	limit  time.Duration
}

func run(args []string, in io.Reader, out, errs io.Writer) int {
	if len(args) > 0 && args[0] == toolServer {
		if err := serveTools(args[1:], in, out); err != nil {
			fmt.Fprintln(errs, "bench:", err)
			return exitFailed
		}
		return exitOK
	}
	o, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(errs, "bench:", err)
		return exitUsage
	}
	if o.render != "" {
		err = render(o, out)
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		bounded, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("%v have passed, see -limit", o.limit))
		err = measure(bounded, o, out, errs)
		cancel()
		stop()
	}
	if err != nil {
		fmt.Fprintln(errs, "bench:", err)
		return exitFailed
	}
	return exitOK
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	var only string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.bridge, "bridge", "bin/mcp-bridge", "the program to measure")
	f.StringVar(&only, "only", "", "the parts to measure, such as c,d; all if empty")
	f.BoolVar(&o.quick, "quick", false, "a few rounds of each, to see that the benchmarks work")
	f.StringVar(&o.json, "json", "", "a file for the report as JSON")
	f.StringVar(&o.render, "render", "", "measure nothing, but show a report that -json has written")
	f.StringVar(&o.page, "page", "", "with -render: put the figures into this page")
	f.IntVar(&o.calls, "calls", steadyCalls, "of the part i")
	f.DurationVar(&o.load, "load", fullLoad, "of each step of the part h")
	f.Float64Var(&o.share, "share", 1, "of the rounds of all other parts, for a shorter run: 0.1 is a tenth")
	f.DurationVar(&o.limit, "limit", defaultLimit, "of the whole run; what has not been measured by then is left out, and the run has failed")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("what is %q? The parts are named by -only", f.Arg(0))
	}
	if o.calls < 10 || o.load <= 0 || !(o.share > 0 && o.share <= 1) {
		return o, errors.New("-calls must be 10 or more, -load positive, -share more than 0 and at most 1")
	}
	for p := range strings.SplitSeq(only, ",") {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		if !slices.ContainsFunc(benchmarks, func(b benchmark) bool { return b.part == p }) {
			return o, fmt.Errorf("there is no part %q; there are %s", p, strings.Join(partNames(), ", "))
		}
		o.parts = append(o.parts, p)
	}
	return o, nil
}

// benchmark is one part.
type benchmark struct {
	part, what string
	run        func(*suite, context.Context) error
}

// benchmarks are in the order in which they are run.
var benchmarks = []benchmark{
	{"a", "from the start of the process to the answer to initialize", (*suite).starts},
	{"b", "the first call", (*suite).firstCalls},
	{"c", "warm calls", (*suite).warmCalls},
	{"d", "calls without a standby", (*suite).coldCalls},
	{"docker", "calls without a standby, over docker", (*suite).dockerCalls},
	{"e", "a tool's round trip", (*suite).roundTrips},
	{"f", "fifty calls at once", (*suite).gathers},
	{"g", "ten megabytes of output", (*suite).outputs},
	{"h", "as many calls as can be made", (*suite).loads},
	{"i", "memory", (*suite).memory},
	{"j", "the cost of each item of the lock-down", (*suite).lockDown},
	{"growth", "tools that no call uses", (*suite).growth},
}

func partNames() []string {
	var names []string
	for _, b := range benchmarks {
		names = append(names, b.part)
	}
	return names
}

// defaultLimit bounds a run.
const defaultLimit = time.Hour

// quiet is for how much of the time, in percent, a machine's processors may be busy before the run begins and yet count as having nothing
// else to do.
const quiet = 10

// measure runs the parts, shows the report and writes it. Where a part fails the others are run all the same.
func measure(ctx context.Context, o options, out, errs io.Writer) (err error) {
	bridge, err := filepath.Abs(o.bridge)
	if err != nil {
		return err
	}
	if _, err := os.Stat(bridge); err != nil {
		return fmt.Errorf("%w: build it with: make build", err)
	}
	dir, err := os.MkdirTemp("", "mcp-bridge-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &suite{bridge: bridge, dir: dir, scale: scaleOf(o), errs: errs,
		report: &Report{Began: time.Now(), Took: map[string]float64{}, Quick: o.quick, Machine: machine(ctx, bridge)}}
	defer func() { err = errors.Join(err, s.close()) }()
	busy, err := busyNow(ctx, s.scale.rest)
	if err != nil {
		return err
	}
	if busy > quiet {
		s.report.note("the machine had other things to do, its processors were busy for %.0f %% of a moment before the run: these figures are not to be quoted", busy)
		s.say("%s", s.report.Notes[0])
	}
	s.report.Notes = append(s.report.Notes, reduced(o)...)
	if n, err := s.configured(ctx); err != nil {
		return err
	} else if n > 0 {
		s.report.note("the files of this user's hosts configure %d servers, which are there in addition to those that a line names, or to none", n)
	}
	before, err := processors()
	if err != nil {
		return err
	}
	s.doAll(ctx, o.parts)
	if after, err := processors(); err == nil {
		w := after.since(before)
		s.report.note("the processors were busy for %.0f %% of the run; for another %.1f %% the machine's own host had them do something else", w.share(w.busy), w.share(w.stolen))
	}
	s.report.Seconds = time.Since(s.report.Began).Seconds()
	s.report.text(out)
	if o.json != "" {
		err = write(o.json, s.report.json)
	}
	return errors.Join(err, context.Cause(ctx), s.report.failure())
}

// fullLoad is how long each step of part h is, if -load says nothing else.
const fullLoad = time.Minute

// reduced are notes of what a run has less of than docs/performance.md says.
func reduced(o options) (notes []string) {
	add := func(format string, a ...any) { notes = append(notes, fmt.Sprintf(format, a...)) }
	if o.quick {
		return nil // which says so itself
	}
	if o.share < 1 {
		add("only a share of the rounds was run: %g", o.share)
	}
	if o.load != fullLoad {
		add("(h) each step was %g s of calls and as long of podman runs, not the %g s of a full run", o.load.Seconds(), fullLoad.Seconds())
	}
	if o.calls != steadyCalls {
		add("(i) the calls were to be %d in all, those of part h included, not the %d of a full run", o.calls, steadyCalls)
	}
	return notes
}

// failure says that something did not work. A target that isn't met, or not resolved, is a figure like others.
func (r *Report) failure() error {
	failed := 0
	for _, f := range r.Figures {
		failed += f.Failed
	}
	switch {
	case len(r.Errors) > 0:
		return fmt.Errorf("%d parts have failed", len(r.Errors))
	case failed > 0:
		return fmt.Errorf("%d calls have failed", failed)
	}
	return nil
}

func write(path string, f func(io.Writer) error) (err error) {
	file, err := os.Create(path) //nolint:gosec // the user names it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return f(file)
}

// render shows a report that was taken before, or puts it into a page.
func render(o options, out io.Writer) error {
	text, err := os.ReadFile(o.render)
	if err != nil {
		return err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("%s is no report of this program: %w", o.render, err)
	}
	for _, v := range r.Verdicts {
		if !slices.Contains(outcomes, v.Outcome) {
			return fmt.Errorf("%s is of another version of this program: it says %q of the target %q. Measure anew", o.render, v.Outcome, v.Target)
		}
	}
	if o.page == "" {
		r.text(out)
		return nil
	}
	page, err := os.ReadFile(o.page)
	if err != nil {
		return err
	}
	if r.Quick || len(r.Parts) < len(benchmarks) {
		return fmt.Errorf("%s is of a quick run or of some parts only, which isn't for a page", o.render)
	}
	replaced, err := r.replaceFigures(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", o.page, err)
	}
	return os.WriteFile(o.page, []byte(replaced), 0o644) //nolint:gosec // a page of the repository
}
