package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A series is what was measured of one thing.
type series struct {
	values []float64
	failed int
	first  error // of the failures
}

func (s *series) add(v float64, err error) {
	if err != nil {
		s.failed++
		if s.first == nil {
			s.first = err
		}
		return
	}
	s.values = append(s.values, v)
}

// took adds a duration in milliseconds.
func (s *series) took(d time.Duration, err error) { s.add(float64(d)/float64(time.Millisecond), err) }

// one returns a series of one value.
func one(v float64) series { return series{values: []float64{v}} }

// quantile returns a value that was measured, by the nearest rank.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// difference returns by how much the median of a is above that of b, and the range in which 95 of
// 100 resamples have it.
func difference(a, b []float64) (middle, low, high float64) {
	const resamples = 1000
	if len(a) == 0 || len(b) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	r := rand.New(rand.NewPCG(1, 1)) // the same for the same values
	again := func(of []float64) float64 {
		drawn := make([]float64, len(of))
		for i := range drawn {
			drawn[i] = of[r.IntN(len(of))]
		}
		return median(drawn)
	}
	var all []float64
	for range resamples {
		all = append(all, again(a)-again(b))
	}
	return median(a) - median(b), quantile(all, 0.025), quantile(all, 0.975)
}

// A report is a table of figures.
type report struct {
	machine string
	took    time.Duration
	rows    [][]string
	notes   []string
	failed  int
}

// figure adds a row. A baseline stands below what it was taken in turns with.
func (r *report) figure(part, name, unit string, s series, baseline bool) {
	r.failed += s.failed
	if s.first != nil {
		note := fmt.Sprintf("(%s) %s: %d failed, the first with: %v", part, name, s.failed, s.first)
		r.notes = append(r.notes, note)
	}
	part = "(" + part + ")"
	if baseline {
		part, name = "", "*beside it:* "+name
	}
	cells := []string{part, name, unit, fmt.Sprint(len(s.values)), "", number(median(s.values)), "", ""}
	if n := len(s.values); n > 1 {
		cells[4] = number(quantile(s.values, 0))
		if n >= 20 {
			cells[6] = number(quantile(s.values, 0.95))
		}
		if n >= 100 {
			cells[7] = number(quantile(s.values, 0.99))
		}
	}
	r.rows = append(r.rows, cells)
}

// absent adds a row that says why something was not measured.
func (r *report) absent(part, name, why string) {
	why = strings.Join(strings.Fields(strings.ReplaceAll(why, "|", "/")), " ") // one cell
	r.rows = append(
		r.rows,
		[]string{"(" + part + ")", name + ": **not measured**, since " + why, "", "0", "", "", "", ""},
	)
}

// compare notes the difference of two medians.
func (r *report) compare(part, what string, a, b series, unit string) {
	middle, low, high := difference(a.values, b.values)
	r.notes = append(r.notes, fmt.Sprintf("(%s) %s: %s %s (%s to %s in 95 of 100 resamples)",
		part, what, number(middle), unit, number(low), number(high)))
}

// ratio notes how many times the median of a is that of b.
func (r *report) ratio(part, what string, a, b series) {
	times := number(median(a.values) / median(b.values))
	r.notes = append(r.notes, fmt.Sprintf("(%s) %s: %s times", part, what, times))
}

// number has as many digits as say something.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// write writes the report as Markdown.
func (r *report) write(w io.Writer) {
	fmt.Fprintf(w, "%s. Taken in %.0f s.\n\n", r.machine, r.took.Seconds())
	fmt.Fprint(w, "| | | unit | n | min | p50 | p95 | p99 |\n")
	fmt.Fprint(w, "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, row := range r.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	fmt.Fprintln(w)
	for _, n := range r.notes {
		fmt.Fprintln(w, "-", n)
	}
}

// Marks of the table in a page.
const (
	tableBegin = "<!-- figures: written by make bench -->\n"
	tableEnd   = "<!-- end of figures -->\n"
)

// putInto replaces the table of a page.
func (r *report) putInto(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		return fmt.Errorf("%s has no %q and %q", page, tableBegin, tableEnd)
	}
	var b strings.Builder
	b.WriteString(before + tableBegin)
	r.write(&b)
	b.WriteString(tableEnd + after)
	return os.WriteFile(page, []byte(b.String()), 0o644) //nolint:gosec // a page of the repository
}

func (r *report) failure() error {
	if r.failed > 0 {
		return fmt.Errorf("%d calls have failed", r.failed)
	}
	return nil
}

// machine says where figures are taken, in words that name no host.
func machine(ctx context.Context, bridge string) string {
	first := func(text []byte, err error) string {
		if err != nil {
			return "unknown"
		}
		line, _, _ := strings.Cut(string(text), "\n")
		return strings.TrimSpace(line)
	}
	cpu := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "model name"); ok {
			name, _, _ := strings.Cut(rest, "\n")
			cpu = strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	load, _, _ := strings.Cut(first(os.ReadFile("/proc/loadavg")), " ")
	return fmt.Sprintf("%s, %d cores (%s), Linux %s, %s, %s, load average %s at the start",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), runtime.NumCPU(), cpu,
		first(os.ReadFile("/proc/sys/kernel/osrelease")),
		first(exec.CommandContext(ctx, "podman", "--version").Output()),
		first(exec.CommandContext(ctx, bridge, "version").Output()), load) //nolint:gosec // what is measured
}
