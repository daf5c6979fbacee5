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
	middle, low, high := difference(a, b)
	if middle != 9 || low > 9 || high < 9 || low < 5 || high > 13 {
		t.Errorf("the difference is %v, from %v to %v", middle, low, high)
	}
}

func TestPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("a\n"+tableBegin+"old\n"+tableEnd+"z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &report{machine: "here", part: "call"}
	warm := &figure{name: "warm", unit: "ms", values: []float64{2, 3}}
	bare := &figure{name: "bare", unit: "ms", values: []float64{1, 1}, beside: true}
	r.put(warm, bare)
	r.compare("the bridge", warm, bare)
	if err := r.putInto(page); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	got := string(text)
	if err != nil || strings.Contains(got, "old") {
		t.Errorf("%v:\n%s", err, got)
	}
	for _, want := range []string{
		"a\n" + tableBegin + "here. ", tableEnd + "z\n",
		"| call | warm | 2.00 ms | 2.00 to 3.00 | 2 |\n",
		"| call | *beside it:* bare | 1.00 ms | 1.00 to 1.00 | 2 |\n",
		"| call | *difference:* the bridge | 1.00 ms | 1.00 to 2.00 |  |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
