// Command bench measures the bridge from outside: the real program over standard input and output,
// real rootless podman, each figure beside a raw baseline that is taken in turns with it. It is a
// module of its own, shares no line with the bridge, and fails when something doesn't work, never
// because of a figure. docs/performance.md has its table; `make bench` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) } //nolint:forbidigo // this is main

// Exit codes.
const (
	exitFailed = 1 // something could not be measured
	exitUsage  = 2
)

// A lab starts what is measured, and what it is measured beside.
type lab struct {
	bridge  string // the program to measure
	dir     string // for sockets and settings
	configs int
}

// A suite is what the parts share.
type suite struct {
	lab
	share  float64
	load   time.Duration // of a step of part h
	calls  int           // of part i
	report *report
	errs   io.Writer
	only   []string // parts; all if empty
}

// parts are run in this order.
var parts = []struct {
	name string
	what string
	run  func(*suite, context.Context) error
}{
	{"a", "process start", (*suite).starts},
	{"b", "first call of a process", (*suite).firstCalls},
	{"c", "warm calls", (*suite).warmCalls},
	{"d", "calls without a waiting container", (*suite).coldCalls},
	{"e", "a tool call from the code", (*suite).toolCalls},
	{"h", "as many calls as can be made", (*suite).loads},
	{"i", "memory", (*suite).memory},
	{"j", "environments", (*suite).environments},
	{"k", "over HTTP", (*suite).overHTTP},
	{"l", "sandboxes that last", (*suite).sandboxes},
}

func run(args []string, out, errs io.Writer) int {
	s := &suite{report: &report{}, errs: errs}
	var only, page string
	var quick bool
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&s.bridge, "bridge", "bin/mcp-bridge", "the program to measure")
	f.StringVar(&only, "only", "", "the parts to measure, such as c,d; all if empty")
	f.StringVar(&page, "page", "", "a page whose table is replaced")
	f.BoolVar(&quick, "quick", false, "two rounds of each, to see that the benchmarks work")
	f.Float64Var(&s.share, "share", 1, "of the rounds; 0.1 is a tenth")
	f.DurationVar(&s.load, "load", time.Minute, "each step of part h")
	f.IntVar(&s.calls, "calls", 10_000, "calls of part i")
	limit := f.Duration("limit", time.Hour, "the whole run, which fails then")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return exitUsage
	}
	if err := s.choose(only); err != nil || f.NArg() > 0 || s.calls < 1 || !(s.share > 0 && s.share <= 1) {
		fmt.Fprintln(errs, "bench: -only takes parts, -calls 1 or more, -share from 0 to 1;", err)
		return exitUsage
	}
	if quick {
		s.share, s.load, s.calls = 0.01, 300*time.Millisecond, 20
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, *limit, fmt.Errorf("%v have passed (-limit)", *limit))
	defer cancel()
	if err := s.measure(ctx, out, page); err != nil {
		fmt.Fprintln(errs, "bench:", err)
		return exitFailed
	}
	return 0
}

func (s *suite) choose(only string) error {
	for name := range strings.SplitSeq(only, ",") {
		known := false
		for _, p := range parts {
			known = known || p.name == name
		}
		switch {
		case name == "":
		case !known:
			return fmt.Errorf("there is no part %q", name)
		default:
			s.only = append(s.only, name)
		}
	}
	return nil
}

// measure runs the parts and writes the report. Where a part fails the others are run all the same.
func (s *suite) measure(ctx context.Context, out io.Writer, page string) (err error) {
	if s.bridge, err = filepath.Abs(s.bridge); err != nil {
		return err
	}
	if _, err := os.Stat(s.bridge); err != nil {
		return fmt.Errorf("%w: build it with: make build", err)
	}
	if s.dir, err = os.MkdirTemp("", "mcp-bridge-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(s.dir)) }()
	s.report.machine = machine(ctx, s.bridge)
	began := time.Now()
	for _, p := range parts {
		if len(s.only) > 0 && !slices.Contains(s.only, p.name) || ctx.Err() != nil {
			continue
		}
		fmt.Fprintf(s.errs, "(%s) %s\n", p.name, p.what)
		if failed := p.run(s, ctx); failed != nil {
			err = errors.Join(err, fmt.Errorf("(%s) %w", p.name, failed))
		}
	}
	s.report.took = time.Since(began)
	s.report.write(out)
	if page != "" && err == nil {
		err = s.report.putInto(page)
	}
	return errors.Join(err, context.Cause(ctx), s.report.failure())
}

// removeAll removes a directory where the watchdog of the last bridge may still write.
func removeAll(dir string) (err error) {
	for range 50 {
		if err = os.RemoveAll(dir); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// rounds returns the share of n that is to be run, two at least.
func (s *suite) rounds(n int) int { return max(int(math.Ceil(s.share*float64(n))), 2) }

// pause lies between warm calls: a user's next call comes when a container waits again.
const pause = 300 * time.Millisecond

// sleep reports whether all of d has passed.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
