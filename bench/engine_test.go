package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

func TestStreamsAreTakenApart(t *testing.T) {
	var in bytes.Buffer
	for _, piece := range []struct {
		stream byte
		text   string
	}{{1, "out"}, {2, "err"}, {1, ""}, {1, "put"}} {
		in.Write([]byte{piece.stream, 0, 0, 0, 0, 0, 0, byte(len(piece.text))})
		in.WriteString(piece.text)
	}
	stderr := &tail{limit: 10}
	got, err := io.ReadAll(&streams{in: bufio.NewReader(&in), stderr: stderr})
	if err != nil || string(got) != "output" || stderr.String() != "it said: err" {
		t.Errorf("got %q, %v, %s", got, err, stderr)
	}
}

// asked is a request as the bridge makes it, with this command.
func asked(t *testing.T, path string, argv []string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"entrypoint": argv[:1], "command": argv[1:], "user": "65534:65534"})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: d\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

func TestFindCreate(t *testing.T) {
	boot := entrypoint.Boot()
	const create = "/v5.7.1/libpod/containers/create"
	other := asked(t, create, []string{"python3", "-c", "pass"})
	own := asked(t, create, boot)
	for _, tt := range []struct {
		name string
		said string
		want bool
	}{
		{"after another", "GET /_ping HTTP/1.1\r\nHost: d\r\n\r\n" + other + own, true},
		{"only another", other, false},
		{"another request", asked(t, "/v5.7.1/libpod/containers/x/start", boot), false},
		{"cut off", own[:len(own)-1], false},
		{"no HTTP", "\x00\x01", false},
		{"nothing", "", false},
	} {
		if got := findCreate([]byte(tt.said), boot); (got != nil) != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestCompilerTakesTheGuestsPlace(t *testing.T) {
	c := container{"entrypoint": []any{"python3"}, "command": []any{"-c", "boot"}, "user": "65534:65534", "cap_drop": []any{"ALL"}}
	got := compiling(c)
	if argv, ok := got["entrypoint"].([]string); !ok || !slices.Equal(argv, entrypoint.Compiler()) || got["command"] != nil {
		t.Errorf("it runs %v %v", got["entrypoint"], got["command"])
	}
	if got["user"] != c["user"] || len(texts(got["cap_drop"])) != 1 || len(texts(c["command"])) != 2 {
		t.Errorf("got %v of %v", got, c)
	}
}

func TestFindExecute(t *testing.T) {
	const frame = `{"type":"execute","id":"r","code":"print(1)","options":{"timeoutMs":30000,"rlimits":{"as":7}},"providers":[]}`
	const sent = "POST /attach HTTP/1.1\r\nHost: d\r\n\r\n12\n" + `{"boot":"…"}` // the source has no line end
	for _, tt := range []struct {
		name string
		said string
		want int64
	}{
		{"behind the source", sent + `{"type":"ping","n":1}` + "\n" + frame + "\n", 7},
		{"right behind the source", sent + frame + "\n", 7},
		{"cut off", sent + frame[:len(frame)-1], 0},
		{"only a ping", sent + `{"type":"ping","n":1}` + "\n", 0},
	} {
		var got int64
		if x := findExecute([]byte(tt.said)); x != nil {
			got = x.Options.Rlimits["as"]
		}
		if got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestFlagsSayWhatTheRequestSays(t *testing.T) {
	const request = `{
		"env": {"B": "2", "A": "1"}, "unsetenvall": true, "read_only_filesystem": true, "read_write_tmpfs": false, "httpproxy": false,
		"use_image_hosts": true, "user": "65534:65534", "hostname": "sandbox", "systemd": "false", "image_volume_mode": "ignore",
		"sdnotifyMode": "ignore", "log_configuration": {"driver": "none"}, "healthconfig": {"Test": ["NONE"]}, "timeout": 210,
		"netns": {"nsmode": "none"}, "pidns": {"nsmode": "private"}, "utsns": {"nsmode": "private"}, "cgroupns": {"nsmode": "private"},
		"ipcns": {"nsmode": "none"},
		"idmappings": {"UIDMap": [{"container_id": 0, "host_id": 0, "size": 65537}], "GIDMap": [{"container_id": 0, "host_id": 0, "size": 65537}]},
		"cap_drop": ["ALL"], "no_new_privileges": true, "seccomp_profile_path": "/p.json", "mask": ["/sys/dev/block"],
		"r_limits": [{"type": "nofile", "soft": 1024, "hard": 1024}], "manage_password": false,
		"resource_limits": {"memory": {"limit": 536870912, "swap": 536870912}, "pids": {"limit": 128}, "cpu": {"quota": 150000, "period": 100000}},
		"mounts": [{"destination": "/tmp", "type": "tmpfs", "options": ["rw", "noexec", "size=67108864"]}]
	}`
	var c container
	if err := json.Unmarshal([]byte(request), &c); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--env=A=1", "--env=B=2", "--unsetenv-all", "--read-only", "--no-hosts", "--read-only-tmpfs=false", "--passwd=false", "--http-proxy=false",
		"--user=65534:65534", "--hostname=sandbox", "--systemd=false", "--image-volume=ignore", "--sdnotify=ignore", "--log-driver=none",
		"--no-healthcheck", "--timeout=210", "--network=none", "--pid=private", "--uts=private", "--cgroupns=private", "--ipc=none",
		"--uidmap=0:0:65537", "--gidmap=0:0:65537", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--security-opt=seccomp=/p.json",
		"--security-opt=mask=/sys/dev/block", "--ulimit=nofile=1024:1024", "--tmpfs=/tmp:rw,noexec,size=67108864",
		"--memory=536870912", "--memory-swap=536870912", "--pids-limit=128", "--cpu-period=100000", "--cpu-quota=150000",
	}
	if got := flags(c); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := strings.Join(flags(c.without("cap_drop")), " "); strings.Contains(got, "--cap-drop") || len(texts(c["cap_drop"])) != 1 {
		t.Errorf("an item that was removed: %s; and of the original is left %v", got, c["cap_drop"])
	}
}

func TestToolServer(t *testing.T) {
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"two","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call"}`,
	}, "\n") + "\n"
	var out, errs bytes.Buffer
	if code := run([]string{toolServer, "12"}, strings.NewReader(in), &out, &errs); code != exitOK {
		t.Fatalf("code %d: %s", code, errs.String())
	}
	answers := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(answers) != 3 || !strings.Contains(answers[0], "protocolVersion") || !strings.Contains(answers[1], `"id":"two"`) || !strings.Contains(answers[2], "-32601") {
		t.Errorf("got %s", out.String())
	}
	if n := strings.Count(answers[1], `"inputSchema"`); n != 12 {
		t.Errorf("%d tools, want 12", n)
	}
	for _, bad := range []string{"", "-1", "x", "1000000"} {
		if code := run([]string{toolServer, bad}, strings.NewReader(""), &out, &errs); code != exitFailed {
			t.Errorf("%q tools: code %d", bad, code)
		}
	}
}

func TestMonitorsAreKnown(t *testing.T) {
	line := func(args ...string) []byte { return []byte(strings.Join(args, "\x00") + "\x00") }
	for _, tt := range []struct {
		name    string
		cmdline []byte
		want    string
	}{
		{"conmon", line("/usr/bin/conmon", "--api-version", "1", "-c", "abc", "-n", "mcp-bridge-7-1-x-y", "-r", "/usr/bin/runc"), "mcp-bridge-7-1-x-y"},
		{"without a name", line("conmon", "-c", "abc", "-n"), ""},
		{"another program", line("grep", "-n", "mcp-bridge-7-1-x-y"), ""},
		{"none, as of a thread of the kernel", nil, ""},
	} {
		if got := monitored(tt.cmdline); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestPlanKnowsEachPart: who waits is told of each part how long it takes, and of the time that is left by the machine's speed so far.
func TestPlanKnowsEachPart(t *testing.T) {
	whole := scaleOf(options{share: 1, calls: 10_000, load: time.Minute})
	var all time.Duration
	for _, part := range partNames() {
		d := whole.takes(part)
		if d < leastPart || d == leastPart && part != "e" {
			t.Errorf("(%s) is said to take %v", part, d)
		}
		all += d
	}
	if all -= whole.takes("docker") - leastPart; all < 27*time.Minute || all > 31*time.Minute {
		t.Errorf("all but docker is said to take %v, which docs/performance.md says otherwise", all)
	}
	if half := scaleOf(options{share: 0.5, calls: 10_000, load: time.Minute}); half.takes("c") > whole.takes("c")*3/5 {
		t.Errorf("half of (c) is said to take %v of %v", half.takes("c"), whole.takes("c"))
	}

	var errs strings.Builder
	s := &suite{scale: whole, errs: &errs, report: &Report{Took: map[string]float64{}}}
	first := benchmark{"a", "the first", func(*suite, context.Context) error { return errors.New("no luck") }}
	s.do(t.Context(), first, []benchmark{{"b", "the second", nil}})
	for _, want := range []string{"(a) the first: about 17s", "(a) has failed: no luck", "(a) took 0s; about 0s to go"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("%q is not said: %s", want, errs.String())
		}
	}
	if len(s.report.Errors) != 1 || s.report.Took["a"] <= 0 {
		t.Errorf("got %+v", s.report)
	}
}

func TestProcessorsAreCounted(t *testing.T) {
	before, err := processors()
	if err != nil {
		t.Fatal(err)
	}
	begin, err := processor(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const enough = 50.0 // milliseconds of this process
	for used := 0.0; used < enough; {
		now, err := processor(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		used = now - begin
	}
	after, err := processors()
	if err != nil {
		t.Fatal(err)
	}
	if w := after.since(before); w.busy < enough/2 || w.all < w.busy+w.stolen || w.share(w.busy) <= 0 || w.share(w.all) != 100 {
		t.Errorf("after %v ms of work: %+v", enough, w)
	}
	if none := (work{}); !math.IsNaN(none.share(0)) {
		t.Error("a share of nothing is a number")
	}
}
