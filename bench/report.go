package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Figure is one line of the table.
type Figure struct {
	Part     string  `json:"part"` // the letter of the benchmark
	Name     string  `json:"name"`
	Baseline bool    `json:"baseline"` // of the figures above it, measured in turns with them
	Unit     string  `json:"unit"`
	N        int     `json:"n"` // that succeeded
	Failed   int     `json:"failed"`
	Success  float64 `json:"success"` // the share of those that succeeded, from 0 to 1
	Min      float64 `json:"min"`
	P50      float64 `json:"p50"`
	P95      float64 `json:"p95"`
	P99      float64 `json:"p99"`
	Max      float64 `json:"max"`
}

// Cost is what one thing costs: a difference of medians or the median of differences, and the range in which 95 of 100 resamples have
// it. A range with zero in it means that nothing could be measured.
type Cost struct {
	Part  string  `json:"part"`
	Of    string  `json:"of"`
	Milli float64 `json:"ms"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Load is when a step of part h was under way, for who looks at the machine meanwhile: scripts/bench-profile.
type Load struct {
	Of      string  `json:"of"` // call or podman run
	Callers int     `json:"callers"`
	Rate    float64 `json:"rate"` // of those that have succeeded, per second
	Spans   []Span  `json:"spans"`
}

// Span is from the first call to the last answer.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Report is all that one run has measured. Its JSON is what tables are made of.
type Report struct {
	Began    time.Time          `json:"began"`
	Seconds  float64            `json:"seconds"`
	Took     map[string]float64 `json:"took"` // seconds, by part
	Machine  Machine            `json:"machine"`
	Quick    bool               `json:"quick"` // too few rounds to say anything but that the benchmarks work
	Parts    []string           `json:"parts"` // that were run
	Figures  []Figure           `json:"figures"`
	Loads    []Load             `json:"loads"`
	Costs    []Cost             `json:"costs"`
	Verdicts []Verdict          `json:"verdicts"`
	Notes    []string           `json:"notes"` // what could not be measured, and differences
	Errors   []string           `json:"errors"`
}

// figure adds a line.
func (r *Report) figure(part, name string, baseline bool, unit string, s series) {
	f := Figure{Part: part, Name: name, Baseline: baseline, Unit: unit, N: len(s.values), Failed: s.failed}
	if all := f.N + f.Failed; all > 0 {
		f.Success = float64(f.N) / float64(all)
	}
	if f.N > 0 {
		f.Min, f.P50, f.P95, f.P99, f.Max = quantile(s.values, 0), median(s.values), quantile(s.values, 0.95), quantile(s.values, 0.99), quantile(s.values, 1)
	}
	if s.first != nil {
		r.note("(%s) %s: the first failure: %v", part, name, s.first)
	}
	r.Figures = append(r.Figures, f)
}

// cost adds a difference in milliseconds. Where a side of it was never measured it adds none.
func (r *Report) cost(part, of string, d difference) {
	if !math.IsNaN(d.middle) {
		r.Costs = append(r.Costs, Cost{part, of, d.middle, d.low, d.high})
	}
}

func (r *Report) note(format string, a ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, a...)) }

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

func (f Figure) share() string {
	if f.N+f.Failed == 0 {
		return "–"
	}
	return fmt.Sprintf("%.4g %%", 100*f.Success)
}

// cells are n, success, min, p50, p95, p99. Of few values the outer quantiles would only repeat the largest.
func (f Figure) cells() []string {
	c := []string{fmt.Sprint(f.N), f.share(), "–", "–", "–", "–"}
	if f.N == 0 {
		return c
	}
	c[3] = number(f.P50)
	if f.N > 1 {
		c[2] = number(f.Min)
	}
	if f.N >= 20 {
		c[4] = number(f.P95)
	}
	if f.N >= 100 {
		c[5] = number(f.P99)
	}
	return c
}

var heads = []string{"n", "success", "min", "p50", "p95", "p99"}

// text writes the report for a terminal.
func (r *Report) text(w io.Writer) {
	fmt.Fprintf(w, "%s\n", r.circumstances())
	const margin = "      beside it: "
	width := 0
	for _, f := range r.Figures {
		width = max(width, len(margin)+utf8.RuneCountInString(f.Name))
	}
	fmt.Fprintf(w, "\n%-*s %-5s", width, "", "")
	for _, h := range heads {
		fmt.Fprintf(w, " %8s", h)
	}
	fmt.Fprintln(w)
	for _, f := range r.Figures {
		name := "(" + f.Part + ") " + f.Name
		if f.Baseline {
			name = margin + f.Name
		}
		fmt.Fprintf(w, "%-*s %-5s", width, name, f.Unit)
		for _, c := range f.cells() {
			fmt.Fprintf(w, " %8s", c)
		}
		fmt.Fprintln(w)
	}
	if len(r.Costs) > 0 && !r.Quick {
		fmt.Fprintln(w, "\ncosts: differences, and the range of 95 in 100 resamples")
		for _, c := range r.Costs {
			fmt.Fprintf(w, "%8s ms  %8s to %-8s (%s) %s\n", number(c.Milli), number(c.Low), number(c.High), c.Part, c.Of)
		}
	}
	if len(r.Verdicts) > 0 && !r.Quick {
		fmt.Fprintf(w, "\ntargets: %s\n", r.tally())
		for _, v := range r.Verdicts {
			fmt.Fprintf(w, "%-12s (%s) %s: %s\n", v.Outcome, v.Part, v.Target, v.Measured)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	for _, e := range r.Errors {
		fmt.Fprintln(w, "error:", e)
	}
}

func (r *Report) circumstances() string {
	s := fmt.Sprintf("%s, %s. Taken in %.0f s", r.Began.UTC().Format("2006-01-02 15:04 UTC"), r.Machine, r.Seconds)
	if r.Quick {
		s += ". QUICK: too few rounds for anything but to see that the benchmarks work"
	}
	return s
}

// markdown writes the report for a page.
func (r *Report) markdown(w io.Writer) {
	fmt.Fprintf(w, "%s.\n\n", r.circumstances())
	fmt.Fprintf(w, "| | | unit | %s |\n| --- | --- | --- |%s\n", strings.Join(heads, " | "), strings.Repeat(" ---: |", len(heads)))
	for _, f := range r.Figures {
		part, name := "("+f.Part+")", f.Name
		if f.Baseline {
			part, name = "", "*beside it:* "+f.Name
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", part, name, f.Unit, strings.Join(f.cells(), " | "))
	}
	if len(r.Costs) > 0 && !r.Quick {
		fmt.Fprint(w, "\n| | cost of | ms | in 95 of 100 resamples |\n| --- | --- | ---: | ---: |\n")
		for _, c := range r.Costs {
			fmt.Fprintf(w, "| (%s) | %s | %s | %s to %s |\n", c.Part, c.Of, number(c.Milli), number(c.Low), number(c.High))
		}
	}
	if len(r.Verdicts) > 0 && !r.Quick {
		fmt.Fprint(w, "\n| | target | measured | |\n| --- | --- | --- | --- |\n")
		for _, v := range r.Verdicts {
			fmt.Fprintf(w, "| (%s) | %s | %s | %s |\n", v.Part, v.Target, v.Measured, v.Outcome)
		}
	}
	for i, n := range append(append([]string{}, r.Notes...), r.Errors...) {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "- %s\n", n)
	}
}

// The lines of a page between which the table stands.
const (
	pageBegin = "<!-- figures: written by make bench -->"
	pageEnd   = "<!-- end of figures -->"
)

// replaceFigures puts the report between the marks of a page.
func (r *Report) replaceFigures(page string) (string, error) {
	before, rest, ok := strings.Cut(page, pageBegin)
	_, after, ended := strings.Cut(rest, pageEnd)
	if !ok || !ended {
		return "", fmt.Errorf("the page lacks the lines %q and %q, between which the figures stand", pageBegin, pageEnd)
	}
	var b strings.Builder
	r.markdown(&b)
	return before + pageBegin + "\n" + b.String() + pageEnd + after, nil
}

func (r *Report) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}
