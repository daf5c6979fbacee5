package main

import (
	"fmt"
	"testing"
)

// TestMaxConcurrent: what is asked for counts; else what memory there is, within bounds.
func TestMaxConcurrent(t *testing.T) {
	for _, tc := range []struct {
		asked runs
		each  size
		want  int
	}{
		{asked: 5, each: 1, want: 5},
		{asked: 200, each: 1 << 60, want: 200},
		{each: 1, want: maxAutoRuns},
		{each: 1 << 60, want: minAutoRuns},
	} {
		t.Run(fmt.Sprint(tc.asked, tc.each), func(t *testing.T) {
			if _, known := memory("MemTotal"); !known && tc.want == minAutoRuns {
				tc.want = maxAutoRuns
			}
			if got := (config{MaxConcurrent: tc.asked, Memory: tc.each}).maxConcurrent(); got != tc.want {
				t.Errorf("%d runs at a time, want %d", got, tc.want)
			}
		})
	}
}
