package output

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
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

// encoded is what an encoder writes.
func encoded(t testing.TB, encode func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestShownImages(t *testing.T) {
	m := image.NewPaletted(image.Rect(0, 0, 30, 30), color.Palette{color.Black, color.White})
	j := encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, m, nil) })
	g := encoded(t, func(b *bytes.Buffer) error { return gif.Encode(b, m, nil) })
	two := encoded(t, func(b *bytes.Buffer) error {
		return gif.EncodeAll(b, &gif.GIF{Image: []*image.Paletted{m, m}, Delay: []int{1, 1}})
	})
	p := picture(t, 30, 30)
	comment := []byte("\x00\x00\x00\x03tEXta\x00bCRC?")
	garbage := bytes.Repeat([]byte("garbage"), 50)
	scan := j[bytes.Index(j, []byte{0xff, 0xda}) : len(j)-2]
	scans := slices.Concat(j[:len(j)-2], bytes.Repeat(scan, maxScans), j[len(j)-2:])
	for _, tc := range []struct {
		name      string
		data      []byte
		mime, why string
	}{
		{"png", p, "image/png", ""},
		{"jpeg", j, "image/jpeg", ""},
		{"gif", g, "image/gif", ""},
		{"animation", two, "image/gif", ""},
		{"webp", []byte("RIFF\x0c\x00\x00\x00WEBPVP8 "), "", "save it as PNG"},
		{"the name of webp", []byte("RIFF....WEBP!garbage"), "", "save it as PNG"},
		{"nothing", nil, "", "can't be read as"},
		{"text", []byte("a picture"), "", "can't be read as"},
		{"the beginning of a png", p[:12], "", "can't be read as"},
		{"garbage behind a png's header", slices.Concat(p[:33], garbage), "",
			"it begins as a PNG image, but can't be read whole"},
		{"a png's comment with a wrong checksum", slices.Concat(p[:33], comment, p[33:]), "image/png", ""},
		{"a png's transparency with a wrong checksum", slices.Concat(p[:33], spoiledChunk("tRNS", 2), p[33:]), "",
			"invalid checksum; save it again to have it shown"},
		{"half a png", p[:len(p)-20], "", "can't be read whole"},
		{"garbage behind a jpeg's headers", slices.Concat(j[:len(j)-len(scan)+12], garbage), "",
			"JPEG image, but can't"},
		{"half a jpeg", j[:len(j)-20], "", "can't be read whole"},
		{"garbage behind a gif's header", slices.Concat(g[:13], garbage), "", "GIF image, but can't"},
		{"a jpeg of many scans", scans, "", "scans, more than 32"},
		{"too wide", picture(t, 8001, 1), "", "8001 x 1 pixels"},
		{"too many pixels", picture(t, 4001, 4000), "",
			"4001 x 4000 pixels large, and an image that is shown has at most 16,000,000"},
		{"too large", noise(t, 700), "", "at most 1.6 MB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var g gallery
			_, mime, why := g.show(tc.data)
			if mime != tc.mime || !strings.Contains(why, tc.why) || (why == "") != (tc.why == "") {
				t.Errorf("got %q, %q", mime, why)
			}
		})
	}
}

// TestImageBomb: little data that says it is half a gigabyte of pixels is not decoded.
func TestImageBomb(t *testing.T) {
	bomb := picture(t, 30, 30)
	binary.BigEndian.PutUint32(bomb[16:], 8000)
	binary.BigEndian.PutUint32(bomb[20:], 8000)
	bomb[24], bomb[25] = 16, 6 // bits, of four channels
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, why := new(gallery).show(bomb)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; !strings.Contains(why,
		"8000 x 8000 pixels large, and an image that is shown has at most 16,000,000") || n > 1<<20 {
		t.Errorf("it took %d bytes, and is a link since %q", n, why)
	}
}

// TestPixelsOfAResultAreBounded: also those of images that turn out not to be whole.
func TestPixelsOfAResultAreBounded(t *testing.T) {
	whole := picture(t, 4000, 4000)
	var g gallery
	for i, data := range [][]byte{whole, whole[:len(whole)-20], whole, whole[:len(whole)-20], whole} {
		_, _, why := g.show(data)
		if beyond := strings.Contains(why, "one result shows at most 64,000,000 pixels"); beyond != (i == 4) {
			t.Errorf("image %d: %q", i, why)
		}
	}
	if _, _, why := g.show(picture(t, 1, 1)); g.shown != 2 || why == "" {
		t.Errorf("%d are shown, then %q", g.shown, why)
	}
}
