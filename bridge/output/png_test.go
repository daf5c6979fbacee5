package output

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image/png"
	"slices"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// chunk is one of a PNG, with n bytes of data.
func chunk(kind string, n int) []byte {
	c := binary.BigEndian.AppendUint32(nil, uint32(n))
	c = append(append(c, kind...), make([]byte, n)...)
	return binary.BigEndian.AppendUint32(c, crc32.ChecksumIEEE(c[4:]))
}

// spoiledChunk is one whose checksum is wrong.
func spoiledChunk(kind string, n int) []byte {
	c := chunk(kind, n)
	c[len(c)-1] ^= 1
	return c
}

// mendable are PNGs with what mendPNG makes of each; nil for the very same.
func mendable(t testing.TB) map[string]struct{ data, want []byte } {
	p := picture(t, 30, 30)
	head, body, end := p[:33], p[33:len(p)-pngAround], p[len(p)-pngAround:]
	// As the image of the npm server everything: a colour profile whose checksum alone is wrong, with
	// good chunks around it.
	everything := slices.Concat(head, spoiledChunk("iCCP", 2736), chunk("eXIf", 120), chunk("pHYs", 9), body,
		end)
	long := spoiledChunk("tEXt", 5)
	copy(long, "\xff\xff\xff\xff")
	return map[string]struct{ data, want []byte }{
		"whole": {p, nil},
		"a colour profile": {everything, slices.Concat(head, chunk("eXIf", 120), chunk("pHYs", 9), body,
			end)},
		"two": {slices.Concat(head, spoiledChunk("tEXt", 0), body, spoiledChunk("tIME", 7), end),
			p},
		"transparency":        {slices.Concat(head, spoiledChunk("tRNS", 2), body, end), nil},
		"a frame":             {slices.Concat(head, body, spoiledChunk("fdAT", 9), end), nil},
		"a critical one":      {slices.Concat(head, spoiledChunk("PLTE", 3), body, end), nil},
		"behind the end":      {slices.Concat(p, spoiledChunk("tEXt", 5)), nil},
		"one longer than all": {slices.Concat(head, spoiledChunk("tEXt", 5), long, body, end), nil},
		"no letters": {slices.Concat(head, spoiledChunk("tEXt", 5), spoiledChunk("t\x00Xt", 5), body,
			end), nil},
		"no end":                 {slices.Concat(head, spoiledChunk("tEXt", 5), body), nil},
		"nothing":                {nil, nil},
		"the signature":          {[]byte(pngSignature), nil},
		"another kind of image":  {[]byte("GIF89a"), nil},
		"a length without chunk": {slices.Concat(head, []byte{0, 0, 0, 0}), nil},
	}
}

func TestMendPNG(t *testing.T) {
	for name, tc := range mendable(t) {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.data)
			want := tc.want
			if want == nil {
				want = tc.data
			}
			if got := mendPNG(tc.data); !bytes.Equal(got, want) {
				t.Errorf("%d bytes became %d, want %d", len(tc.data), len(got), len(want))
			}
			if !bytes.Equal(tc.data, before) {
				t.Error("the code's own file was changed")
			}
		})
	}
}

// TestMendedImageIsShown: the client gets the data without what was wrong, and those decode.
func TestMendedImageIsShown(t *testing.T) {
	data := mendable(t)["a colour profile"].data
	if _, err := png.Decode(bytes.NewReader(data)); err == nil {
		t.Fatal("there is nothing to mend")
	}
	contents, notices := present("1", []sandbox.Artifact{{Name: "tiny.png", Mime: "image/png", Data: data}},
		true)
	if len(contents) != 1 || len(notices) > 0 {
		t.Fatalf("got %v, %v", contents, notices)
	}
	shown, ok := contents[0].(mcp.ImageContent)
	if !ok {
		t.Fatalf("got %T", contents[0])
	}
	got, err := base64.StdEncoding.DecodeString(shown.Data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(got)); err != nil || shown.MIMEType != "image/png" {
		t.Errorf("%s: %v", shown.MIMEType, err)
	}
}

// FuzzMendPNG: what decodes stays the same, and nothing is left to be mended.
func FuzzMendPNG(f *testing.F) {
	for _, tc := range mendable(f) {
		f.Add(tc.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := mendPNG(data)
		if !bytes.Equal(mendPNG(got), got) {
			t.Error("mending again finds more")
		}
		if bytes.Equal(got, data) {
			return
		}
		if len(got) >= len(data) {
			t.Errorf("%d bytes became %d", len(data), len(got))
		}
		if c, err := png.DecodeConfig(bytes.NewReader(data)); err == nil && c.Width*c.Height > 1<<16 {
			return
		}
		if _, err := png.Decode(bytes.NewReader(data)); err == nil {
			t.Error("a picture that decodes was changed")
		}
	})
}
