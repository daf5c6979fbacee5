package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, tt := range []struct {
		name   string
		values []float64
		q      float64
		want   float64
	}{
		{"the middle of three", []float64{3, 1, 2}, 0.5, 2},
		{"the lower middle of four", []float64{4, 3, 2, 1}, 0.5, 2},
		{"the smallest", hundred, 0, 1},
		{"the largest", hundred, 1, 100},
		{"p95", hundred, 0.95, 95},
		{"p99", hundred, 0.99, 99},
		{"of one", []float64{7}, 0.99, 7},
	} {
		if got := quantile(tt.values, tt.q); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("of none: got %v, want NaN", got)
	}
}

func TestDifferenceOfMedians(t *testing.T) {
	var low, high, same []float64
	for i := range 50 {
		low = append(low, 10+float64(i%5)/10)
		high = append(high, 12+float64(i%5)/10)
		same = append(same, 10+float64((i+1)%5)/10)
	}
	if d := differenceOfMedians(high, low); math.Abs(d.middle-2) > 1e-9 || d.low < 1.5 || d.high > 2.5 {
		t.Errorf("two apart: %+v", d)
	}
	if d := differenceOfMedians(same, low); math.Abs(d.middle) > 1e-9 || d.low > 0 || d.high < 0 {
		t.Errorf("the same: %+v", d)
	}
	if d := differenceOfMedians(nil, low); !math.IsNaN(d.middle) {
		t.Errorf("of nothing: %+v, want NaN", d)
	}
}

// TestMedianDifference: a machine that becomes slower and slower hides nothing from differences that were measured within moments.
func TestMedianDifference(t *testing.T) {
	var with, without, differences []float64
	for i := range 50 {
		speed := float64(i)
		with, without = append(with, 100+speed+2), append(without, 100+speed+float64(i%3-1)/10)
		differences = append(differences, with[i]-without[i])
	}
	if d := medianDifference(differences); math.Abs(d.middle-2) > 0.11 || d.low < 1.5 || d.high > 2.5 {
		t.Errorf("by differences: %+v, want 2", d)
	}
	if d := differenceOfMedians(with, without); d.low > 0 {
		t.Errorf("by medians: %+v, which should not tell", d)
	}
	if d := medianDifference(nil); !math.IsNaN(d.middle) {
		t.Errorf("of nothing: %+v, want NaN", d)
	}
}

func TestGrowthOf(t *testing.T) {
	if more, of := growthOf([]float64{1, 2, 10, 11, 10, 30, 20, 21}); more != 10 || of != 10 {
		t.Errorf("got %v more than %v, want 10 more than 10", more, of)
	}
	if more, _ := growthOf([]float64{1, 2, 3}); !math.IsNaN(more) {
		t.Errorf("of three values: %v, want NaN", more)
	}
}

func TestSeriesCountsFailures(t *testing.T) {
	var s series
	s.took(3*time.Millisecond, nil)
	s.took(time.Hour, errors.New("no"))
	var r Report
	r.figure("x", "thing", false, "ms", s)
	if f := r.Figures[0]; f.N != 1 || f.Failed != 1 || f.P50 != 3 || f.Success != 0.5 || f.share() != "50 %" {
		t.Errorf("got %+v, %s", f, f.share())
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "thing: the first failure: no") {
		t.Errorf("got the notes %q", r.Notes)
	}
	if err := r.failure(); err == nil {
		t.Error("a failed call is no failure of the run")
	}
}

func TestVerdicts(t *testing.T) {
	var r Report
	r.verdict("x", "at most 1", 1, "ms", 1)
	r.verdict("x", "at most 1", 1.1, "ms", 1)
	r.verdict("x", "at most 1", math.NaN(), "ms", 1)
	r.atLeast("x", "at least 50", 50, "times", 50)
	r.atLeast("x", "at least 50", 49, "times", 50)
	r.atLeast("x", "at least 50", math.NaN(), "times", 50)
	for i, want := range []Outcome{Met, NotMet, NotResolved, Met, NotMet, NotResolved} {
		if r.Verdicts[i].Outcome != want {
			t.Errorf("%d: %+v, want %q", i, r.Verdicts[i], want)
		}
	}
	if got := r.tally(); got != "2 met, 2 not met, 2 not resolved" {
		t.Errorf("got %q", got)
	}
	if err := r.failure(); err != nil {
		t.Errorf("a figure has failed the run: %v", err)
	}
}

// TestRangesAreJudged: what a few noisy rounds can't tell is no target met.
func TestRangesAreJudged(t *testing.T) {
	none := difference{math.NaN(), math.NaN(), math.NaN()}
	for _, tt := range []struct {
		name      string
		d         difference
		low, high float64
		want      Outcome
	}{
		{"around zero, narrow", difference{0, -0.1, 0.1}, 0, 0.3, Met},
		{"around zero, as wide as the bound is not", difference{0.1, -0.2, 0.31}, 0, 0.3, NotResolved},
		{"above zero, below the bound", difference{0.1, 0.05, 0.2}, 0, 0.3, Met},
		{"above zero, up to beyond the bound", difference{0.2, 0.05, 0.4}, 0, 0.3, NotMet},
		{"above the bound", difference{3, 2.5, 4}, 2, 2, NotMet},
		{"to both sides of the bound", difference{2, 1, 4}, 2, 2, NotResolved},
		{"of nothing", none, 0, 0.3, NotResolved},
	} {
		if got := tt.d.within(tt.low, tt.high); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := (difference{0.12, -0.5, 1}).text("ms"); got != "0.120 ms (-0.500 to 1.00)" {
		t.Errorf("got %q", got)
	}
}

func sample() Report {
	r := Report{Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 6, Machine: Machine{CPU: "cpu", Cores: 2}}
	r.figure("a", "start", false, "ms", series{values: []float64{1, 2, 3}})
	r.figure("a", "true", true, "ms", series{values: make([]float64, 100)})
	r.verdict("a", "start ≤ 30 ms", 2, "ms", 30)
	r.note("something")
	return r
}

func TestPageIsReplaced(t *testing.T) {
	dir := t.TempDir()
	page, report := filepath.Join(dir, "page.md"), filepath.Join(dir, "report.json")
	r := sample()
	r.Parts = partNames()
	if err := write(report, r.json); err != nil {
		t.Fatal(err)
	}
	before := "# Title\n\n" + pageBegin + "\nold figures\n" + pageEnd + "\n\nThe rest.\n"
	if err := os.WriteFile(page, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	for range 2 { // the second time changes nothing more
		if code := run([]string{"-render", report, "-page", page}, strings.NewReader(""), &out, &errs); code != exitOK {
			t.Fatalf("code %d: %s", code, errs.String())
		}
		got, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"# Title\n\n" + pageBegin, "| (a) | start | ms | 3 | 100 % | 1.00 | 2.00 | – | – |", "*beside it:* true", "| (a) | start ≤ 30 ms | 2.00 ms | met |", "- something", pageEnd + "\n\nThe rest.\n"} {
			if strings.Count(string(got), want) != 1 {
				t.Errorf("%q is not in it once:\n%s", want, got)
			}
		}
		if strings.Contains(string(got), "old figures") {
			t.Errorf("the old figures are still there:\n%s", got)
		}
	}
	r.Verdicts[0].Outcome = "true" // as a version that knew two outcomes might have it
	if err := write(report+".old", r.json); err != nil {
		t.Fatal(err)
	}
	if code := run([]string{"-render", report + ".old"}, strings.NewReader(""), &out, &errs); code != exitFailed || !strings.Contains(errs.String(), "another version") {
		t.Errorf("a report of another version: code %d, %s", code, errs.String())
	}
	r.Parts = r.Parts[1:]
	r.Verdicts[0].Outcome = NotResolved
	if err := write(report+".part", r.json); err != nil {
		t.Fatal(err)
	}
	if code := run([]string{"-render", report + ".part", "-page", page}, strings.NewReader(""), &out, &errs); code != exitFailed || !strings.Contains(errs.String(), "some parts only") {
		t.Errorf("a report of some parts: code %d, %s", code, errs.String())
	}
	if err := os.WriteFile(page, []byte("no marks"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run([]string{"-render", report, "-page", page}, strings.NewReader(""), &out, &errs); code != exitFailed || !strings.Contains(errs.String(), pageBegin) {
		t.Errorf("a page without marks: code %d, %s", code, errs.String())
	}
}

func TestQuickReportsSayNothingOfTargets(t *testing.T) {
	r := sample()
	r.Quick = true
	var text, page bytes.Buffer
	r.text(&text)
	r.markdown(&page)
	for _, got := range []string{text.String(), page.String()} {
		if strings.Contains(got, "≤ 30 ms") || !strings.Contains(got, "QUICK") {
			t.Errorf("got %s", got)
		}
	}
}

func TestReportIsJSON(t *testing.T) {
	r := sample()
	r.figure("b", "nothing", false, "ms", series{failed: 1})
	none := loaded{callers: 2, each: series{failed: 3}, took: time.Second, work: work{busy: 5, all: 10}} // not one call has succeeded
	none.figures(&r, "callers: 2: ", "call", false)
	var out bytes.Buffer
	if err := r.json(&out); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back.Figures) != 7 || back.Figures[2].Failed != 1 || back.Loads[0].Callers != 2 {
		t.Errorf("%v, %+v", err, back)
	}
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"a part that isn't there", []string{"-only", "c,zz"}, `"zz"`},
		{"a stray word", []string{"c"}, `"c"`},
		{"too few calls", []string{"-calls", "1"}, "-calls"},
		{"no share", []string{"-share", "0"}, "-share"},
		{"a share that is no number", []string{"-share", "NaN"}, "-share"},
		{"an unknown flag", []string{"-nope"}, "-nope"},
	} {
		var out, errs bytes.Buffer
		if code := run(tt.args, strings.NewReader(""), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), tt.want) {
			t.Errorf("%s: code %d, %s", tt.name, code, errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := run([]string{"-bridge", "/nonexistent"}, strings.NewReader(""), &out, &errs); code != exitFailed || !strings.Contains(errs.String(), "make build") {
		t.Errorf("no bridge: code %d, %s", code, errs.String())
	}
}
