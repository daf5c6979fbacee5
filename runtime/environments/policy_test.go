package environments_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
)

// TestMinAge: releases that are younger than a week, or as it is configured, are left to others.
func TestMinAge(t *testing.T) {
	b := newBench(t)
	b.define(t, "template", "", "one")
	lock := filepath.Join(b.cfg.Dir, "pylock.template.toml")
	standIn(t, "cp '"+lock+"' $out; echo \"$args\" >'"+b.cfg.Dir+"/said'\n")
	for set, want := range map[time.Duration]time.Duration{0: 7 * 24 * time.Hour,
		30 * time.Hour: 30 * time.Hour} {
		b.cfg.MinAge = set
		if err := environments.New(b.cfg).Add(t.Context(), "mine", []string{"one"}); err != nil {
			t.Fatal(err)
		}
		said := read(t, filepath.Join(b.cfg.Dir, "said"))
		m := regexp.MustCompile(`--exclude-newer (\S+)`).FindStringSubmatch(said)
		if m == nil {
			t.Fatalf("uv is told %s", said)
		}
		until, err := time.Parse(time.RFC3339, m[1])
		if age := time.Since(until); err != nil || age < want || age > want+time.Hour {
			t.Errorf("with %v a release must be %v old, want %v: %v", set, age, want, err)
		}
	}
}

// TestExpected: an environment is expected from its build to its removal, and without a place to
// note that never.
func TestExpected(t *testing.T) {
	b := newBench(t)
	b.define(t, "a", "", "one")
	check := func(want bool) {
		t.Helper()
		if got := b.Expected("a"); got != want {
			t.Errorf("expected: %v, want %v", got, want)
		}
	}
	check(false)
	b.build(t, "a")
	check(true)
	if err := b.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	check(false)
	if environments.New(environments.Config{Driver: b.cfg.Driver}).Expected("a") {
		t.Error("expected without a cache")
	}
}

// TestAutoIsBounded: of the environments that are made for code those stay that were used last.
func TestAutoIsBounded(t *testing.T) {
	const most = 20
	b := newBench(t)
	b.define(t, "template", "", "one")
	standIn(t, "cp '"+filepath.Join(b.cfg.Dir, "pylock.template.toml")+"' $out\n")
	name := func(i int) string { return fmt.Sprintf("%s%02d", environments.Auto, i) }
	for i := range most + 3 {
		if err := b.Add(t.Context(), name(i), []string{"one"}); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(time.Duration(i-60) * time.Minute)
		if err := os.Chtimes(filepath.Join(b.cfg.Dir, name(i)+".toml"), then, then); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			b.build(t, name(i)) // which is its last use
		}
	}
	var left []string
	for _, d := range b.Definitions() {
		left = append(left, d.Name)
	}
	if len(left) != most+2 || left[0] != name(1) || left[1] != name(4) || !slices.Contains(left, "template") {
		t.Errorf("left are %q; want the one that was built, and the last %d", left, most-1)
	}
	files, err := filepath.Glob(filepath.Join(b.cfg.Dir, "*"))
	if err != nil || len(files) != 3*most+2 {
		t.Errorf("%d files are left: %v", len(files), err)
	}
}

func TestLocked(t *testing.T) {
	b := newBench(t)
	b.define(t, "mine", "", "one", "two")
	if got, err := b.Locked("mine"); err != nil || len(got) != 2 || got[1].Name != "two" ||
		got[1].Version != "1.0" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := b.Locked("none"); !errors.As(err, new(*environments.UnknownError)) {
		t.Errorf("got %v", err)
	}
}
