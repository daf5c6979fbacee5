package output

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif"  // for image.Decode
	_ "image/jpeg" // the same
	_ "image/png"  // the same
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Bounds of the images that a result shows. Hosts pass them to their model as they are, and one
// that the model's service refuses spoils the whole conversation. What is beyond the bounds is a
// link.
const (
	maxImageBytes   = 3 << 19 // of one, before base64
	maxImagesBytes  = 4 << 20 // of all of a result
	maxImages       = 20
	maxImageSide    = 8000       // pixels
	maxImagePixels  = 16_000_000 // of one: decoded it takes up to 20 bytes for each
	maxImagesPixels = 64_000_000 // of all that one result has decoded
	maxScans        = 32         // of one JPEG: each goes over all its pixels
)

// shownImages are the types that hosts show to their models, by their name in package image. Hosts
// show WebP too, but the standard library doesn't decode it, so it can't be checked.
var shownImages = map[string]string{"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif"}

// imageTypes are those of files that are meant to be shown.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// decoding is held while an image is decoded, so that runs that end together don't need the memory
// of one each: 300 kB can be 16 million pixels.
var decoding sync.Mutex

// gallery counts the images of one result against their bounds.
type gallery struct{ shown, bytes, pixels int }

// show returns the data and type of an image to show, and counts it, or says why it isn't shown. It
// doesn't look at the file's name. The data are the image's own without what mendPNG leaves out.
func (g *gallery) show(data []byte) (shown []byte, mime, why string) {
	if len(data) <= maxImageBytes {
		data = mendPNG(data)
	}
	if mime, why = g.judge(data); why != "" {
		return nil, "", why
	}
	return data, mime, ""
}

// judge is like show, for data that are shown as they are.
func (g *gallery) judge(data []byte) (mime, why string) {
	switch {
	case len(data) > maxImageBytes:
		return "", fmt.Sprintf("an image that is shown has at most %s", text.Size(maxImageBytes))
	case g.shown >= maxImages || g.bytes+len(data) > maxImagesBytes:
		return "", fmt.Sprintf(
			"one result shows at most %d images with %s together",
			maxImages,
			text.Size(maxImagesBytes),
		)
	case len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "", "a WebP image can't be checked; save it as PNG to have it shown"
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || shownImages[format] == "" {
		return "", "it can't be read as a PNG, JPEG or GIF image"
	}
	if why := g.count(config); why != "" {
		return "", why
	}
	if err := decode(format, data); err != nil {
		return "", fmt.Sprintf(
			"it begins as a %s image, but can't be read whole: %v; save it again to have it shown",
			strings.ToUpper(format),
			err,
		)
	}
	g.shown, g.bytes = g.shown+1, g.bytes+len(data)
	return shownImages[format], ""
}

// count counts the pixels of an image before it is decoded, or says why it won't be.
func (g *gallery) count(c image.Config) (why string) {
	pixels := c.Width * c.Height // no format has sides of more than 31 bits
	switch {
	case c.Width > maxImageSide || c.Height > maxImageSide:
		return fmt.Sprintf("it is %d x %d pixels large, and a side of an image that is shown has at most %d",
			c.Width, c.Height, maxImageSide)
	case pixels == 0:
		return "it has no pixels"
	case pixels > maxImagePixels:
		return fmt.Sprintf("it is %d x %d pixels large, and an image that is shown has at most %s of them",
			c.Width, c.Height, text.Count(maxImagePixels))
	case g.pixels+pixels > maxImagesPixels:
		return fmt.Sprintf("one result shows at most %s pixels", text.Count(maxImagesPixels))
	}
	g.pixels += pixels
	return ""
}

// decode returns what is wrong with an image. Of a GIF it reads the first frame, which models see.
func decode(format string, data []byte) error {
	// Between scans a zero or a marker follows each 0xFF, so this counts all of them.
	if n := bytes.Count(data, []byte{0xff, 0xda}); format == "jpeg" && n > maxScans {
		return fmt.Errorf("it has %d scans, more than %d", n, maxScans)
	}
	decoding.Lock()
	defer decoding.Unlock()
	_, _, err := image.Decode(bytes.NewReader(data))
	return err
}
