package bridge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// picture is a PNG.
func picture(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// noise is a PNG that can't be made small.
func noise(t testing.TB, side int) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	m := image.NewNRGBA(image.Rect(0, 0, side, side))
	for i := range m.Pix {
		m.Pix[i] = byte(r.Uint32())
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withFiles is a bridge whose runs hand files over and print nothing.
func withFiles(t testing.TB, files ...sandbox.Artifact) *peer {
	return connect(t, running(t, func(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
		return sandbox.Result{Status: sandbox.StatusOK, Artifacts: files}, nil
	}))
}

type contents struct {
	Content []struct {
		Type, Text, Data, MIMEType, URI, Name, Description string
		Size                                               int64
	}
}

func (p *peer) contents(t testing.TB) contents {
	t.Helper()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python",` +
		`"arguments":{"code":"x"}}}`)
	var c contents
	if err := json.Unmarshal(p.next().Result, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFilesOfAResult(t *testing.T) {
	small, large := picture(t, 2, 2), noise(t, 700)
	p := withFiles(t,
		sandbox.Artifact{Name: "plot.png", Mime: "image/png", Data: small},
		sandbox.Artifact{Name: "sub/Übersicht.csv", Mime: "text/csv", Data: []byte("a,b\n")},
		sandbox.Artifact{Name: "large.png", Mime: "image/png", Data: large},
		sandbox.Artifact{Name: "fake.png", Mime: "image/png", Data: []byte("no picture")},
		sandbox.Artifact{Name: "x.svg", Mime: "image/svg+xml", Data: []byte("<svg/>")},
	)
	got := p.contents(t).Content
	var kinds []string
	for _, c := range got {
		kinds = append(kinds, c.Type)
	}
	if diff := cmp.Diff([]string{"text", "image", "resource_link", "resource_link", "resource_link",
		"resource_link"}, kinds); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(got[0].Text, "[large.png (2.0 MB) is a link and not shown: an image that is shown "+
		"has at most 1.6 MB]") ||
		!strings.Contains(got[0].Text, "[fake.png (10 bytes) is a link and not shown: it can't be read as") {
		t.Errorf("the text is %q", got[0].Text)
	}
	if got[1].Data != base64.StdEncoding.EncodeToString(small) || got[1].MIMEType != "image/png" {
		t.Errorf("the image is %+v", got[1])
	}
	run, _, _ := strings.Cut(strings.TrimPrefix(got[2].URI, "mcp-bridge://runs/"), "/")
	if got[2].URI != "mcp-bridge://runs/"+run+"/sub/%C3%9Cbersicht.csv" || got[2].Name != "sub/Übersicht.csv" ||
		got[2].Size != 4 || got[2].MIMEType != "text/csv" {
		t.Errorf("the link is %+v", got[2])
	}

	for uri, want := range map[string]string{
		got[2].URI: `{"contents":[{"uri":"` + got[2].URI +
			`","mimeType":"text/csv","text":"a,b\n"}]}`,
		got[5].URI: `{"contents":[{"uri":"` + got[5].URI +
			`","mimeType":"image/svg+xml","text":"<svg/>"}]}`,
		// an image that is shown can be read too
		"mcp-bridge://runs/" + run + "/plot.png":   base64.StdEncoding.EncodeToString(small),
		got[3].URI:                                 base64.StdEncoding.EncodeToString(large),
		"mcp-bridge://runs/" + run + "/fake%2Epng": base64.StdEncoding.EncodeToString([]byte("no picture")),
	} {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q}}`, uri)
		f := p.next()
		var plain bytes.Buffer
		if f.Error != nil {
			t.Errorf("%s: %+v", uri, f.Error)
			continue
		}
		d := json.NewEncoder(&plain)
		d.SetEscapeHTML(false)
		var v any
		if err := json.Unmarshal(f.Result, &v); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(f.Result, []byte(want)) {
			var w any
			if json.Unmarshal([]byte(want), &w) != nil || !cmp.Equal(v, w) {
				t.Errorf("%s: got %.300s, want %.300s", uri, f.Result, want)
			}
		}
	}

	for uri, want := range map[string]string{
		"mcp-bridge://runs/" + run + "/plot.pgn":  `did you mean \"plot.png\"?`,
		"mcp-bridge://runs/" + run + "/":          "",
		"mcp-bridge://runs/" + run:                "",
		"mcp-bridge://runs/" + "nothing/plot.png": "kept now, the last used first: " + run,
		"mcp-bridge://runs/" + run + "/../x":      "no file",
		"mcp-bridge://runs/" + run + "/%zz":       "",
	} {
		for params, code := range map[string]int{
			fmt.Sprintf(`{"uri":%q}`, uri):               -32002,
			fmt.Sprintf(`{"uri":%q,%s`, uri, modern[1:]): -32602,
		} {
			p.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":%s}`, params)
			f := p.next()
			if f.Error == nil || f.Error.Code != code || !strings.Contains(fmt.Sprintf("%q", f.Error.Message), want) {
				t.Errorf("%s: got %+v, want %d %s", params, f.Error, code, want)
			}
		}
	}
}

func TestSpoiledImageIsALink(t *testing.T) {
	spoiled := append(picture(t, 30, 30)[:33], "garbage"...)
	p := withFiles(t,
		sandbox.Artifact{Name: "a.png", Mime: "image/png", Data: spoiled},
		sandbox.Artifact{Name: "a.webp", Mime: "image/webp", Data: []byte("RIFF....WEBP!garbage")},
	)
	got := p.contents(t).Content
	if len(got) != 3 || got[1].Type != "resource_link" || got[2].Type != "resource_link" ||
		!strings.Contains(got[0].Text, "[a.png (40 bytes) is a link and not shown: it begins as a PNG") {
		t.Errorf("got %+v", got)
	}
}

// TestOldClient: a client whose protocol has no resource links gets text in their place.
func TestOldClient(t *testing.T) {
	for version, kind := range map[string]string{"2024-11-05": "text", "2025-03-26": "text",
		"2025-06-18": "resource_link", "2025-11-25": "resource_link"} {
		p := withFiles(t, sandbox.Artifact{Name: "a.csv", Mime: "text/csv", Data: []byte("a")})
		p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},`+
			`"clientInfo":{"name":"t","version":"1"}}}`, version)
		p.next()
		got := p.contents(t).Content
		if len(got) != 1 || got[0].Type != kind || !strings.Contains(got[0].Text+got[0].URI, "mcp-bridge://runs/") {
			t.Errorf("%s: got %+v, want a %s", version, got, kind)
		}
	}
}

func TestFilesAlone(t *testing.T) {
	got := withFiles(t, sandbox.Artifact{Name: "p.png", Mime: "image/png", Data: picture(t, 1, 1)}).contents(
		t).Content
	if len(got) != 1 || got[0].Type != "image" {
		t.Errorf("got %+v, want the image and no empty text", got)
	}
}

func TestReadOutput(t *testing.T) {
	text := strings.Repeat("é line\n", 100_000)
	p := connect(t, running(t, func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
		error) {
		return sandbox.Result{Status: sandbox.StatusOK, Output: []sandbox.Chunk{{Stream: "stdout", Text: text},
			{Stream: "stderr", Text: "warned"}}}, nil
	}))
	shown := p.call(`{"code":"x"}`).Content[0].Text
	var run string
	var offset int
	_, mark, _ := strings.Cut(shown, "; read_output(run=")
	if _, err := fmt.Sscanf(mark, "%q, offset=%d)", &run, &offset); err != nil || offset < DefaultOutput/3 ||
		len(shown) > DefaultOutput+500 {
		t.Fatalf("%v in %.300s of %d bytes", err, mark, len(shown))
	}
	if !strings.HasPrefix(text, shown[:offset]) || !strings.HasSuffix(shown,
		fmt.Sprintf("\nstderr:\nwarned\n[… cut in the middle: read_output(run=%q)]", run)) {
		t.Errorf("shown are %.50q and %q", shown, shown[len(shown)-50:])
	}
	read := func(args string) toolResult {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_output","arguments":%s}}`,
			args)
		return p.next().tool(t)
	}
	var got strings.Builder
	got.WriteString(shown[:offset])
	total := len(text) + len("stderr:\nwarned")
	for offset < total {
		res := read(fmt.Sprintf(`{"run":%q,"offset":%d,"limit":100000}`, run, offset))
		body := res.Content[0].Text
		at := strings.LastIndex(body, "[bytes ")
		var from, to, size int
		if _, err := fmt.Sscanf(body[at:], "[bytes %d to %d of %d;", &from, &to, &size); err != nil ||
			from != offset || size != total || to <= from {
			t.Fatalf("%v: %s", err, body[at:])
		}
		got.WriteString(body[:at][:to-from])
		if last := to == total; last != strings.HasSuffix(body, "; that is the end]") {
			t.Errorf("at %d of %d: %s", to, total, body[at:])
		}
		offset = to
	}
	if got.String() != text+"stderr:\nwarned" {
		t.Error("what was read piece by piece isn't what was printed")
	}
	if res := read(fmt.Sprintf(`{"run":%q,"offset":"-6"}`, run)); res.Content[0].Text != fmt.Sprintf(
		"warned\n[bytes %d to %d of %d; offset=-6 counts from the end; that is the end]", total-6, total, total) {
		t.Errorf("got %q", res.Content[0].Text)
	}
	for limit, want := range map[int]string{
		20: fmt.Sprintf("[bytes 0 to 64 of %d; limit=20 became 64: it is from 64 to 262144 bytes; offset=64 "+
			"reads on]", total),
		1000000: "; limit=1000000 became 262144: it is from 64 to 262144 bytes; ",
		64:      fmt.Sprintf("[bytes 0 to 64 of %d; offset=64 reads on]", total),
	} {
		if res := read(fmt.Sprintf(`{"run":%q,"limit":%d}`, run, limit)); !strings.Contains(res.Content[0].Text,
			want) {
			t.Errorf("limit %d: got %.400q, want %s", limit, res.Content[0].Text, want)
		}
	}
	for args, want := range map[string]string{
		`{}`:                                 `argument "run"`,
		`{"run":7}`:                          `argument "run"`,
		`{"run":"x"}`:                        "kept now, the last used first: " + run,
		`{"run":"` + run + `","offset":1e9}`: `argument "offset" must be a whole number`,
		`{"run":"` + run + `","offset":1000000000}`: "beyond the end",
		`{"run":"` + run + `","limit":0}`:           `argument "limit" must be a positive number`,
		`{"run":"` + run + `","limt":1}`:            `did you mean "limit"`,
		`{"run":"` + run + `","offset":true}`:       "whole number",
		`[]`:                                        "must be an object",
	} {
		if res := read(args); !res.IsError || !strings.Contains(res.Content[0].Text, want) {
			t.Errorf("%s: got %+v, want %s", args, res, want)
		}
	}
}

// TestShownWholeIsNotKept: what was shown whole takes no room from what wasn't.
func TestShownWholeIsNotKept(t *testing.T) {
	p := connect(t, build(t, nil))
	p.call(`{"code":"short"}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_output",` +
		`"arguments":{"run":"x"}}}`)
	if got := p.next().tool(t).Content[0].Text; !strings.Contains(got, "none is kept now") {
		t.Error(got)
	}
}
