package settings

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// must ends the test where a step that it only needs has failed.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSettingsPage compares docs/settings.md with the program: there is a row for each variable and
// for nothing else, and its default is the program's.
func TestSettingsPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/settings.md")
	must(t, err)
	told := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| ((?:`[A-Z_]+`(?:, )?)+) \\| ([^|]*?) ?\\|")
	for _, row := range row.FindAllStringSubmatch(strings.ReplaceAll(string(page), "`"+Prefix+"_`", ""), -1) {
		names := strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")
		defaults := strings.Split(strings.ReplaceAll(row[2], "`", ""), ", ")
		if len(names) != len(defaults) {
			t.Fatalf("the row of %q has the defaults %q", names, defaults)
		}
		for i, name := range names {
			told[Prefix+"_"+name] = defaults[i]
		}
	}
	if diff := cmp.Diff(defaults(), told); diff != "" {
		t.Errorf("docs/settings.md differs from the program (-program +page):\n%s", diff)
	}
}

// TestHelpListsVariables: serve --help has a line for each variable, in their order, and its
// default.
func TestHelpListsVariables(t *testing.T) {
	entry := regexp.MustCompile(`(?m)^  (MCP_BRIDGE_\w+) (.*(?:\n {36}.*)*)`)
	var names []string
	for i, m := range entry.FindAllStringSubmatch(Help, -1) {
		names = append(names, m[1])
		want := reflect.TypeFor[Settings]().Field(min(i, len(Variables())-1)).Tag.Get("default")
		_, got, _ := strings.Cut(strings.Join(strings.Fields(m[2]), " "), "(default ")
		if strings.TrimSuffix(got, ")") != want {
			t.Errorf("%s: the default is %q, want %q", m[1], got, want)
		}
	}
	if diff := cmp.Diff(Variables(), names); diff != "" {
		t.Errorf("serve --help differs from Settings (-Settings +help):\n%s", diff)
	}
}

// defaults returns the default of each variable in the words of docs/settings.md.
func defaults() map[string]string {
	words := map[string]string{ // of variables whose default is a choice of the program's
		"RUNTIME":     "found",
		"IMAGE":       strings.TrimPrefix(Settings{}.Images()[0], "docker.io/library/"),
		"CPUS":        "all",
		"OCI_RUNTIME": "the engine's",
		"ARTIFACTS":   "see below",
		"LOG_LEVEL":   "info (warn outside serve)",
	}
	all, fields := map[string]string{}, reflect.TypeFor[Settings]()
	for i, name := range Variables() {
		all[name] = fields.Field(i).Tag.Get("default")
		if word, ok := words[strings.TrimPrefix(name, Prefix+"_")]; ok && (all[name] == "" || all[name] == "0") {
			all[name] = word
		}
	}
	return all
}

// TestMaxConcurrent: what is asked for counts; else what memory there is, within bounds.
func TestMaxConcurrent(t *testing.T) {
	for _, tc := range []struct {
		asked count
		each  size
		want  int
	}{
		{asked: 5, each: 1, want: 5},
		{asked: 200, each: 1 << 60, want: 200},
		{each: 1, want: maxAutoRuns},
		{each: 1 << 60, want: minAutoRuns},
	} {
		t.Run(fmt.Sprint(tc.asked, tc.each), func(t *testing.T) {
			if _, known := TotalMemory(); !known && tc.want == minAutoRuns {
				tc.want = maxAutoRuns
			}
			if got := (Settings{MaxConcurrent: tc.asked, Memory: tc.each}).MaxRuns(); got != tc.want {
				t.Errorf("%d runs at a time, want %d", got, tc.want)
			}
		})
	}
}

// TestMaxContainers: where memory decides how many sandboxes there are, they share it with the
// runs, which have one container at least; a number of them comes beside the runs.
func TestMaxContainers(t *testing.T) {
	for _, tc := range []struct {
		name           string
		sandboxes      count
		runs           count
		each           size
		kept, together int
	}{
		{"as memory says", auto, 0, 1, maxAutoRuns / 2, maxAutoRuns},
		{"more runs", auto, 100, 1, maxAutoRuns / 2, 100},
		{"fewer runs", auto, 1, 1, maxAutoRuns / 2, maxAutoRuns},
		{"one that takes all memory", auto, 1, 1 << 60, 1, 2},
		{"a number", 5, 3, 1, 5, 8},
		{"none", 0, 3, 1, 0, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, known := TotalMemory(); !known && tc.each != 1 {
				t.Skip("what memory there is isn't known")
			}
			c := Settings{Sandboxes: tc.sandboxes, MaxConcurrent: tc.runs, Memory: tc.each}
			kept := c.MaxSandboxes()
			if all := c.MaxContainers(kept); kept != tc.kept || all != tc.together {
				t.Errorf("%d sandboxes, %d containers; want %d and %d", kept, all, tc.kept, tc.together)
			}
		})
	}
}

// TestStandbySetting: a number, none, or as many as memory and cores allow.
func TestStandbySetting(t *testing.T) {
	const wrong = "it must be a number from 0 to 32, or auto"
	const unread = "it must be a whole number such as 4, or auto"
	for _, tc := range []struct {
		value    string
		min, max int
		err      string
	}{
		{value: "", min: 1, max: 1},
		{value: "0"},
		{value: "1", min: 1, max: 1},
		{value: "32", min: 32, max: 32},
		{value: "auto", min: 1, max: 2 * runtime.NumCPU()},
		{value: "33", err: wrong},
		{value: "-1", err: wrong},
		{value: "1.5", err: unread},
		{value: "AUTO", err: unread},
		{value: "some", err: unread},
	} {
		t.Run(tc.value, func(t *testing.T) {
			if tc.value != "" {
				t.Setenv("MCP_BRIDGE_STANDBY", tc.value)
			}
			c, err := Read()
			switch {
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), "MCP_BRIDGE_STANDBY") ||
				!strings.Contains(err.Error(), tc.err)):
				t.Errorf("got %v, want that %s", err, tc.err)
			case tc.err == "" && (err != nil || c.Standbys() < tc.min || c.Standbys() > tc.max):
				t.Errorf("got %d, %v; want %d to %d", c.Standbys(), err, tc.min, tc.max)
			}
		})
	}
}

// TestVariables: the error of a variable speaks of the variable, not of Go. What the Python project
// with the same purpose reads works where it has a meaning here, and is told in a sentence of its
// own where it has none.
func TestVariables(t *testing.T) {
	const duration = "it must be a duration such as 30, 30s or 2m: not negative, and at most 1e9 seconds"
	for kv, want := range map[string]string{
		"PIDS=x":                          `MCP_BRIDGE_PIDS="x": it must be a whole number such as 100`,
		"PIDS=1e30":                       `MCP_BRIDGE_PIDS="1e30": it must be a whole number such as 100`,
		"CPUS=two":                        `MCP_BRIDGE_CPUS="two": it must be a number such as 1.5`,
		"MEMORY=big":                      `MCP_BRIDGE_MEMORY="big": it must be a size such as 512m or 1g`,
		"OUTPUT=1":                        "MCP_BRIDGE_OUTPUT must be from 1k to 4m",
		"OUTPUT=1g":                       "MCP_BRIDGE_OUTPUT must be from 1k to 4m",
		"OUTPUT=much":                     `MCP_BRIDGE_OUTPUT="much": it must be a size such as 512m or 1g`,
		"PIDS=99999999999999999999":       `MCP_BRIDGE_PIDS="99999999999999999999": it is too large`,
		"UPSTREAM_ROOTS=all":              `MCP_BRIDGE_UPSTREAM_ROOTS="all": it is none or client`,
		"UPSTREAM_START_TIMEOUT=0":        "MCP_BRIDGE_UPSTREAM_START_TIMEOUT must be positive",
		"UPSTREAM_IDLE_TIMEOUT=-1":        `MCP_BRIDGE_UPSTREAM_IDLE_TIMEOUT="-1": ` + duration,
		"UPSTREAM_IDLE_TIMEOUT=-5s":       `MCP_BRIDGE_UPSTREAM_IDLE_TIMEOUT="-5s": ` + duration,
		"UPSTREAM_IDLE_TIMEOUT=2000000h":  `MCP_BRIDGE_UPSTREAM_IDLE_TIMEOUT="2000000h": ` + duration,
		"RUNTIME_IDLE_TIMEOUT=1000000001": `MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT="1000000001": ` + duration,
		"QUEUE_TIMEOUT=NaN":               `MCP_BRIDGE_QUEUE_TIMEOUT="NaN": ` + duration,
		"UPSTREAM_START_TIMEOUT=1m30s":    "",
		"SANDBOX_MAX_AGE=60":              "", // below the time without a call
		"SANDBOX_MAX_AGE=0":               "MCP_BRIDGE_SANDBOX_MAX_AGE must be positive",
		"UPSTREAM_START_TIMEOUT=1.5":      "",
		"OUTPUT_MODE=compact":             "",
		"OUTPUT_MODE=toon": "MCP_BRIDGE_OUTPUT_MODE=toon: results aren't written as TOON; use text, " +
			"which is as short, or structured",
		"POLICY=policy.toml":   `MCP_BRIDGE_POLICY="policy.toml": it is not an absolute path`,
		"AUDIT=../audit.jsonl": `MCP_BRIDGE_AUDIT="../audit.jsonl": it is not an absolute path`,
		"SECCOMP=./mine.json":  `MCP_BRIDGE_SECCOMP="./mine.json": it is not an absolute path`,
		"SECCOMP=engine":       "",
		"CONFIG=/a.json" + string(os.PathListSeparator) + "b": "MCP_BRIDGE_CONFIG and MCP_SERVERS_CONFIG: " +
			`"b" is not an absolute path, nor one below ~`,
		"CONFIG=~/a.json": "",
		"STATE_DIR=/home/me/MCPs": "MCP_BRIDGE_STATE_DIR has no meaning here: what is kept between runs is in a " +
			"sandbox, and no directory of yours is mounted; remove the variable",
		"STATE_DIR=": "",
		"ALLOW_SELF_SERVER=1": "MCP_BRIDGE_ALLOW_SELF_SERVER has no meaning here: the bridge never starts itself " +
			"as one of its servers; remove the variable, or set it to 0",
		"ALLOW_SELF_SERVER=False": "",
		"TIMEOUT=30s":             "",
		"LOG_LEVEL=loud":          `MCP_BRIDGE_LOG_LEVEL="loud": it must be debug, info, warn or error`,
		"LOG_LEVEL=debug":         "",
		"SANDBOXES=257":           `MCP_BRIDGE_SANDBOXES="257": it must be a number from 0 to 256, or auto`,
		"FOO=1":                   "there is no variable MCP_BRIDGE_FOO; mcp-bridge serve --help lists them",
		"STANDBYS=1": "there is no variable MCP_BRIDGE_STANDBYS (did you mean MCP_BRIDGE_STANDBY?); " +
			"mcp-bridge serve --help lists them",
	} {
		name, value, _ := strings.Cut(kv, "=")
		t.Run(kv, func(t *testing.T) {
			t.Setenv("MCP_BRIDGE_"+name, value)
			c, err := Read()
			if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
				t.Errorf("got %v, want %s", err, want)
			}
			if err == nil && c.OutputMode != "text" {
				t.Errorf("the output mode is %q", c.OutputMode)
			}
		})
	}
	t.Setenv("MCP_BRIDGE_CONFIG", "/a.json")
	t.Setenv("MCP_SERVERS_CONFIG", "/b.json")
	if c, err := Read(); err != nil || !slices.Equal(c.Config, pathList{"/a.json", "/b.json"}) {
		t.Errorf("got %v, %v", c.Config, err)
	}
	t.Setenv("MCP_SERVERS_CONFIG", "b.json")
	if _, err := Read(); err == nil || !strings.Contains(err.Error(), `"b.json" is not an absolute`) {
		t.Errorf("a relative path of another project's variable: %v", err)
	}
}

// TestEmptyVariables: each means its default.
func TestEmptyVariables(t *testing.T) {
	for _, name := range Variables() {
		t.Setenv(name, "") // and back at the end
		must(t, os.Unsetenv(name))
	}
	want, err := Read()
	must(t, err)
	for _, name := range Variables() {
		t.Setenv(name, "")
	}
	got, err := Read()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
