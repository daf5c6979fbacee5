package main

import (
	"bufio"
	"io"
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

func TestStreams(t *testing.T) {
	said := &tail{limit: 100}
	in := "\x01\x00\x00\x00\x00\x00\x00\x03out" + "\x02\x00\x00\x00\x00\x00\x00\x03err" +
		"\x01\x00\x00\x00\x00\x00\x00\x02!\n"
	got, err := io.ReadAll(&streams{in: bufio.NewReader(strings.NewReader(in)), stderr: said})
	if err != nil || string(got) != "out!\n" || !strings.Contains(said.String(), "err") {
		t.Errorf("got %q, %v; %s", got, err, said)
	}
}

// TestHeard takes a box apart that was heard as bridge and guest say it.
func TestHeard(t *testing.T) {
	b := &box{}
	sent := "3 4\nabcdefg" + `{"type":"ping","n":1}` + "\n" + `{"type":"execute","id":"x","code":"y"}` + "\n"
	if err := b.sent(bufio.NewReader(strings.NewReader(sent))); err != nil {
		t.Fatal(err)
	}
	order, err := b.order("print(2)")
	if err != nil || string(b.source) != "3 4\nabcdefg" ||
		!strings.Contains(string(order), `"code":"print(2)"`) {
		t.Errorf("source %q, order %s, %v", b.source, order, err)
	}
	if b.sent(bufio.NewReader(strings.NewReader("no lengths\n"))) == nil {
		t.Error("what begins with no lengths was taken for a guest's source")
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
