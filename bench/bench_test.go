package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStatistics(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.95: 5, 1: 5} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	a, b := []float64{10, 11, 12, 13, 14}, []float64{1, 2, 3, 4, 5}
	if middle, low, high := difference(a, b); middle != 9 || low > 9 || high < 9 || low < 5 || high > 13 {
		t.Errorf("the difference is %v, from %v to %v", middle, low, high)
	}
}

func TestPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("a\n"+tableBegin+"old\n"+tableEnd+"z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &report{machine: "here"}
	r.figure("c", "warm", "ms", series{values: []float64{1, 2}}, false)
	if err := r.putInto(page); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if got := string(text); err != nil || strings.Contains(got, "old") ||
		!strings.Contains(got, "| (c) | warm | ms | 2 | 1.00 | 1.00 |") ||
		!strings.HasPrefix(got, "a\n") || !strings.HasSuffix(got, "z\n") {
		t.Errorf("%v:\n%s", err, got)
	}
}
