package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

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
		"r_limits": [{"type": "nofile", "soft": 1024, "hard": 1024}],
		"mounts": [{"destination": "/tmp", "type": "tmpfs", "options": ["rw", "noexec", "size=67108864"]}]
	}`
	var c container
	if err := json.Unmarshal([]byte(request), &c); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--env=A=1", "--env=B=2", "--unsetenv-all", "--read-only", "--no-hosts", "--read-only-tmpfs=false", "--http-proxy=false",
		"--user=65534:65534", "--hostname=sandbox", "--systemd=false", "--image-volume=ignore", "--sdnotify=ignore", "--log-driver=none",
		"--no-healthcheck", "--timeout=210", "--network=none", "--pid=private", "--uts=private", "--cgroupns=private", "--ipc=none",
		"--uidmap=0:0:65537", "--gidmap=0:0:65537", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--security-opt=seccomp=/p.json",
		"--security-opt=mask=/sys/dev/block", "--ulimit=nofile=1024:1024", "--tmpfs=/tmp:rw,noexec,size=67108864",
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
