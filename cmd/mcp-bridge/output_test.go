package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// block is a piece of a tool's result as a host gets it.
type block struct{ Type, Text, Data, MIMEType, URI, Name string }

// blocks calls run_python and gives the pieces of its result.
func (c *client) blocks(code string, timeout int) (pieces []block, isError bool) {
	c.t.Helper()
	m := c.request("tools/call", map[string]any{"name": "run_python",
		"arguments": map[string]any{"code": code, "servers": []string{}, "timeout": timeout}})
	var r struct {
		Content []block
		IsError bool
	}
	if err := json.Unmarshal(m.Result, &r); err != nil || len(r.Content) == 0 {
		c.t.Fatalf("%v in %.300s", err, m.Result)
	}
	return r.Content, r.IsError
}

// resource reads one.
func (c *client) resource(uri string) (text, blob string) {
	c.t.Helper()
	m := c.request("resources/read", map[string]any{"uri": uri})
	var r struct {
		Contents []struct{ Text, Blob string }
	}
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil || len(r.Contents) != 1 {
		c.t.Fatalf("%s: %+v, %.300s", uri, m.Error, m.Result)
	}
	return r.Contents[0].Text, r.Contents[0].Blob
}

// drawing is code that makes the bytes of a PNG.
const drawing = `
import struct, zlib
def piece(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
png = b"\x89PNG\r\n\x1a\n" + piece(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + piece(b"IDAT", zlib.compress(b"\0\0")) + piece(b"IEND", b"")
`

func TestFilesOfARun(t *testing.T) {
	needEngine(t)
	c := serve(t, command(t, nil))
	pieces, isError := c.blocks(drawing+`
print("before")
display(png, mime="image/png")
save_artifact("table.csv", "a,b\n1,2\n")
open("out/left.bin", "wb").write(bytes(range(256)))
open("out/fake.png", "w").write("no picture")
print("after");
`, 30)
	if isError || len(pieces) != 5 || pieces[1].Type != "image" || pieces[1].MIMEType != "image/png" {
		t.Fatalf("got %+v", pieces)
	}
	holds(t, pieces[0].Text, "before\nafter\n[written to ",
		"\n[fake.png (10 bytes) is a link and not shown: it can't be read as")
	for i, want := range []string{"table.csv", "fake.png", "left.bin"} {
		if p := pieces[i+2]; p.Type != "resource_link" || p.Name != want ||
			!strings.HasPrefix(p.URI, "mcp-bridge://runs/") {
			t.Errorf("piece %d is %+v, want a link to %s", i+2, p, want)
		}
	}
	if text, _ := c.resource(pieces[2].URI); text != "a,b\n1,2\n" {
		t.Errorf("table.csv is %q", text)
	}
	_, blob := c.resource(pieces[4].URI)
	if data, err := base64.StdEncoding.DecodeString(blob); err != nil || len(data) != 256 || data[255] != 255 {
		t.Errorf("left.bin is %x, %v", data, err)
	}
	if m := c.request("resources/read", map[string]any{"uri": "mcp-bridge://runs/nothing/x"}); m.Error == nil ||
		m.Error.Code != -32002 ||
		!strings.Contains(m.Error.Message, "kept now") {
		t.Errorf("a file that isn't there: %+v", m.Error)
	}
}

// TestNothingIsLost: what was printed and handed over is there, whatever ended the run.
func TestNothingIsLost(t *testing.T) {
	needTime(t)
	needEngine(t)
	c := serve(t, command(t, nil))
	for name, end := range map[string]string{
		"timeout":       "import time; time.sleep(100)",
		"busy":          "while True: pass",
		"kill":          "import os; os.kill(os.getpid(), 9)",
		"segfault":      "import ctypes; ctypes.string_at(0)",
		"os._exit":      "import os; os._exit(3)",
		"exception":     "1/0",
		"out of memory": "x = []\nwhile True: x.append(bytearray(1 << 20))",
	} {
		t.Run(name, func(t *testing.T) {
			pieces, isError := c.blocks("print('printed')\nn = save_artifact('saved.txt', 'saved' * 600_000)\nn = "+
				"open('out/left.txt', 'w').write('left')\n"+end, 4)
			if !isError || len(pieces) != 3 || !strings.HasPrefix(pieces[0].Text, "printed\n") {
				t.Fatalf("isError is %v: %+v", isError, pieces)
			}
			saved, _ := c.resource(pieces[1].URI)
			left, _ := c.resource(pieces[2].URI)
			if saved != strings.Repeat("saved", 600_000) || left != "left" {
				t.Errorf("got %d bytes of saved.txt, and left.txt is %q", len(saved), left)
			}
		})
	}
}

func TestOutputIsReadOn(t *testing.T) {
	needTime(t)
	needEngine(t)
	c := serve(t, command(t, nil))
	want := "begin\n" + strings.Repeat("0123456789é\n", 100_000) + "end\n"
	pieces, _ := c.blocks("print('begin')\nfor n in range(100_000): print('0123456789é')\nprint('end')", 60)
	shown := pieces[0].Text
	_, mark, _ := strings.Cut(shown, "; read_output(run=")
	var run string
	var offset int
	if _, err := fmt.Sscanf(mark, "%q, offset=%d)", &run, &offset); err != nil {
		t.Fatalf("%v in a result of %d bytes: %.200s", err, len(shown), mark)
	}
	got := shown[:offset]
	for len(got) < len(want) {
		res := parseAnswer(t, c.request("tools/call", map[string]any{"name": "read_output",
			"arguments": map[string]any{"run": run, "offset": len(got), "limit": 200_000}}))
		at := strings.LastIndex(res.Text, "[bytes ")
		var from, to int
		if at < 0 || res.IsError {
			t.Fatalf("got %.300s", res.Text)
		}
		if _, err := fmt.Sscanf(res.Text[at:], "[bytes %d to %d of", &from, &to); err != nil || from != len(got) ||
			to <= from {
			t.Fatalf("%v in %s", err, res.Text[at:])
		}
		got += res.Text[:to-from]
	}
	if got != want {
		t.Errorf("what was read has %d bytes, what was printed %d", len(got), len(want))
	}
}

// TestSlipsInAContainer: what goes wrong because of the walls says what to do instead.
func TestSlipsInAContainer(t *testing.T) {
	needTime(t)
	needEngine(t)
	c := serve(t, command(t, map[string]entry{"shop": shop(t)}))
	for code, want := range map[string]string{
		"import urllib.request\nurllib.request.urlopen('http://example.com', timeout=5)": "there is no network " +
			"in here; call a tool of a server instead: mcp_shop",
		"import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=5)": "there is no network " +
			"in here",
		"import requests":           "nothing can be installed here; there is only Python's standard library",
		"open('/opt/x', 'w')":       "below /workspace and /tmp only",
		"open('/home/me/data.csv')": "the user's files aren't in here",
		"with open('/workspace/f', 'wb') as f:\n  while True: f.write(bytes(1 << 20))": "The only places to " +
			"write to",
		"mcp_shp.echo(text='x')": "mcp_shop",
		// in Python's own words or in ours
	} {
		got := c.python(code, map[string]any{"timeout": 20})
		if !got.IsError || !strings.Contains(got.Text, want) || strings.Contains(got.Text, "<guest>") {
			t.Errorf("%s: got %s, want %q in it", code, got.Text, want)
		}
	}
}

func TestRunWritesArtifacts(t *testing.T) {
	needEngine(t)
	dir := filepath.Join(t.TempDir(), "files")
	code := "n = save_artifact('a.txt', 'one')\nn = open('out/b.txt', 'w').write('two')"
	out, err := command(t, nil, "run", "--json", "--artifacts", dir, "-c", code).Output()
	var got struct {
		Artifacts []struct{ Name, Path string }
	}
	if err != nil || json.Unmarshal(out, &got) != nil || len(got.Artifacts) != 2 {
		t.Fatalf("%v: %s", err, out)
	}
	for i, want := range []string{"one", "two"} {
		text, err := os.ReadFile(got.Artifacts[i].Path)
		if err != nil || string(text) != want || filepath.Dir(got.Artifacts[i].Path) != dir {
			t.Errorf("%+v: %q, %v", got.Artifacts[i], text, err)
		}
	}
	said, err := command(t, nil, "run", "--artifacts", dir, "-c", code).CombinedOutput()
	if err == nil || !strings.Contains(string(said), "a.txt is in "+dir+" already and was left as it is") {
		t.Errorf("a second run: %v, %s", err, said)
	}
}
