// Command bench measures the bridge from outside: the real program, real rootless podman, and each
// figure beside a baseline of the same run. It is a module of its own, which takes the guest and
// its frames from the bridge and nothing else. It fails when an answer is wrong, never because of a
// figure. `make bench` runs it, and docs/performance.md has its table.
package main

import (
	"context"
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

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) } //nolint:forbidigo // this is main

// exitFailed says that something could not be measured.
const exitFailed, exitUsage = 1, 2

// limit bounds a run of all parts, which takes some twenty minutes on two quiet cores.
const limit = time.Hour

// A suite is what the parts share.
type suite struct {
	bridge  string // the program to measure
	dir     string // for settings and packages
	quick   bool   // two rounds of each figure are enough
	report  report
	clients []*client // which the end of a part closes
}

// A part is given a warm bridge that has a number of servers.
type part struct {
	name    string
	servers int
	run     func(*suite, context.Context, *client) error
}

// parts are run in this order.
var parts = []part{
	{"start", 0, (*suite).start},
	{"call", 0, (*suite).call},
	{"tool", 1, (*suite).tool},
	{"load", 0, (*suite).load},
	{"memory", 13, (*suite).memory},
	{"http", 0, (*suite).http},
	{"env", 0, (*suite).env},
	{"sandbox", 0, (*suite).sandbox},
	{"bad", 0, (*suite).bad},
}

func run(args []string, out, errs io.Writer) int {
	s := &suite{}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&s.bridge, "bridge", "bin/mcp-bridge", "the program to measure")
	f.BoolVar(&s.quick, "quick", false, "two rounds of each figure, to see that the benchmarks work")
	only := f.String("only", "", "the parts to measure, such as call,tool; all if empty")
	page := f.String("page", "", "a page whose table is replaced, by that of all parts")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage
	}
	names := strings.Split(*only, ",")
	chosen := slices.DeleteFunc(slices.Clone(parts), func(p part) bool {
		return *only != "" && !slices.Contains(names, p.name)
	})
	if *only != "" && (len(chosen) != len(names) || *page != "") || f.NArg() > 0 {
		fmt.Fprintln(errs, "bench: -only takes names of parts, see bench/run, and then there is no -page")
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%v have passed", limit))
	defer cancel()
	err := s.measure(ctx, chosen, errs)
	s.report.write(out)
	if err == nil && *page != "" {
		err = s.report.putInto(*page)
	}
	if err != nil {
		fmt.Fprintln(errs, "bench:", err)
		return exitFailed
	}
	return 0
}

// measure runs the chosen parts. When one fails the others are run all the same.
func (s *suite) measure(ctx context.Context, chosen []part, errs io.Writer) (err error) {
	if s.bridge, err = filepath.Abs(s.bridge); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "mcp-bridge-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(s.dir)) }()
	if s.report.machine, err = machine(ctx, s.bridge); err != nil {
		return err
	}
	began := time.Now()
	for _, p := range chosen {
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintln(errs, "bench:", p.name)
		s.report.part = p.name
		c, failed := s.warm(ctx, p.servers)
		if failed == nil {
			failed = p.run(s, ctx, c)
		}
		for _, c := range s.clients {
			failed = errors.Join(failed, c.close())
		}
		s.clients = nil
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.name, failed))
		}
	}
	s.report.took = time.Since(began)
	return errors.Join(err, context.Cause(ctx))
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
