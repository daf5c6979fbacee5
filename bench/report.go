package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// A figure is what was measured of one thing.
type figure struct {
	name   string
	unit   string
	beside bool  // it is a baseline
	take   taker // nil where values are added otherwise

	mu     sync.Mutex
	values []float64
}

// A taker does something once, and returns how long it took.
type taker func(context.Context) (time.Duration, error)

// row returns a figure in milliseconds.
func row(name string, take taker) *figure { return &figure{name: name, unit: "ms", take: take} }

// beside returns a baseline in milliseconds.
func beside(name string, take taker) *figure {
	return &figure{name: name, unit: "ms", beside: true, take: take}
}

// again takes a value. It may be called concurrently.
func (f *figure) again(ctx context.Context) error {
	took, err := f.take(ctx)
	if err = cmp.Or(err, context.Cause(ctx)); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.took(took)
	return nil
}

// took adds a duration.
func (f *figure) took(d time.Duration) {
	f.values = append(f.values, float64(d)/float64(time.Millisecond))
}

// quantile returns one of the values, of which there are some, by the nearest rank.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}

// difference returns by how much the median of a is above that of b, and the range in which 95 of
// 100 resamples have it.
func difference(a, b []float64) (middle, low, high float64) {
	const resamples = 1000
	r := rand.New(rand.NewPCG(1, 1)) // the same for the same values
	again := func(of []float64) float64 {
		drawn := make([]float64, len(of))
		for i := range drawn {
			drawn[i] = of[r.IntN(len(of))]
		}
		return quantile(drawn, 0.5)
	}
	var all []float64
	for range resamples {
		all = append(all, again(a)-again(b))
	}
	return quantile(a, 0.5) - quantile(b, 0.5), quantile(all, 0.025), quantile(all, 0.975)
}

// A report is a table of figures.
type report struct {
	machine string
	took    time.Duration
	part    string // that is measured
	rows    []string
}

// put adds rows of figures, and leaves out those that have no value.
func (r *report) put(figures ...*figure) {
	for _, f := range figures {
		n := len(f.values)
		if n == 0 {
			continue
		}
		name, spread := f.name, ""
		if f.beside {
			name = "*beside it:* " + name
		}
		if n > 1 {
			spread = between(quantile(f.values, 0.05), quantile(f.values, 0.95))
		}
		r.add(name, number(quantile(f.values, 0.5))+" "+f.unit, spread, fmt.Sprint(n))
	}
}

// compare adds a row of the difference of two medians.
func (r *report) compare(name string, a, b *figure) {
	if len(a.values) > 0 && len(b.values) > 0 {
		middle, low, high := difference(a.values, b.values)
		r.add("*difference:* "+name, number(middle)+" "+a.unit, between(low, high), "")
	}
}

func (r *report) add(cells ...string) {
	r.rows = append(r.rows, fmt.Sprintf("| %s | %s |", r.part, strings.Join(cells, " | ")))
}

func between(low, high float64) string { return number(low) + " to " + number(high) }

// number has as many digits as say something.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// write writes the report as Markdown.
func (r *report) write(w io.Writer) {
	fmt.Fprintf(w, "%s. Taken in %.0f s.\n\n", r.machine, r.took.Seconds())
	fmt.Fprint(w, "| part | | median | range | n |\n| --- | --- | ---: | ---: | ---: |\n")
	for _, row := range r.rows {
		fmt.Fprintln(w, row)
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

// machine says where figures are taken, in words that name no host.
func machine(ctx context.Context, bridge string) (string, error) {
	const script = `
printf '%s, %s cores (%s), Linux %s, %s, %s, load average %s at the start' \
	"$(date -u '+%F %H:%M UTC')" "$(nproc)" \
	"$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$(uname -r)" \
	"$(podman --version)" "$("$0" version | head -n 1)" "$(cut -d' ' -f1 /proc/loadavg)"`
	_, said, err := program(ctx, "sh", "-c", script, bridge)
	return said, err
}
