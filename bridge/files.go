package bridge

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"  // for image.DecodeConfig
	_ "image/jpeg" // the same
	_ "image/png"  // the same
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

const (
	runsURI      = "mcp-bridge://runs/"
	fileTemplate = runsURI + "{run}/{+name}"
)

// Bounds of the images that a result shows. Hosts pass them to their model as they are, and one that the model's service
// refuses spoils the whole conversation: what is beyond is a link.
const (
	maxImageBytes  = 3 << 19 // of one, before base64
	maxImagesBytes = 4 << 20 // of all of a result
	maxImages      = 20
	maxImageSide   = 8000 // pixels
)

// shownImages are the types that hosts show to their models, by the name that package image has for them.
var shownImages = map[string]string{"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif"}

// showable says of an image's data as what type it can be shown, or why not. What a file is called says nothing.
func showable(data []byte) (mime, why string) {
	if len(data) > maxImageBytes {
		return "", fmt.Sprintf("an image that is shown has at most %s", size(maxImageBytes))
	}
	if len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP" {
		return "image/webp", ""
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case err != nil || shownImages[format] == "":
		return "", "it can't be read as a PNG, JPEG, GIF or WebP image"
	case config.Width > maxImageSide || config.Height > maxImageSide:
		return "", fmt.Sprintf("it is %d x %d pixels large, and a side of an image that is shown has at most %d", config.Width, config.Height, maxImageSide)
	case config.Width == 0 || config.Height == 0:
		return "", "it has no pixels"
	}
	return shownImages[format], ""
}

// imageTypes are those of files that are meant to be shown.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// present makes the contents of a result that stand for a run's files, in their order, and says why an image isn't shown. Without
// links, text stands for them.
func present(run string, files []sandbox.Artifact, links bool) (contents []mcp.Content, notices []string) {
	images, total := 0, 0
	for _, f := range files {
		if slices.Contains(imageTypes, f.Mime) {
			mime, why := showable(f.Data)
			if why == "" && (images >= maxImages || total+len(f.Data) > maxImagesBytes) {
				why = fmt.Sprintf("one result shows at most %d images with %s together", maxImages, size(maxImagesBytes))
			}
			if why == "" {
				images, total = images+1, total+len(f.Data)
				contents = append(contents, mcp.NewImageContent(base64.StdEncoding.EncodeToString(f.Data), mime))
				continue
			}
			notices = append(notices, fmt.Sprintf("%s (%s) is a link and not shown: %s", f.Name, size(int64(len(f.Data))), why))
		}
		n := int64(len(f.Data))
		if !links {
			contents = append(contents, mcp.NewTextContent(fmt.Sprintf("[file %s (%s, %s): resource %s]", f.Name, f.Mime, size(n), fileURI(run, f.Name))))
			continue
		}
		link := mcp.NewResourceLink(fileURI(run, f.Name), f.Name, size(n), f.Mime)
		link.Size = &n
		contents = append(contents, link)
	}
	return contents, notices
}

// fileURI names a file of a run for resources/read.
func fileURI(run, name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return runsURI + run + "/" + strings.Join(parts, "/")
}

func filesTemplate() mcp.ResourceTemplate {
	return mcp.NewResourceTemplate(fileTemplate, "run-file", mcp.WithTemplateDescription("A file that a run of run_python handed over; its result has the link."))
}

// readFile answers resources/read for a file of a run.
func (b *Bridge) readFile(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	f, err := b.findFile(req.Params.URI)
	if err != nil {
		notFound(ctx)
		return nil, err
	}
	if text := string(f.Data); isText(f.Mime) && utf8.ValidString(text) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, MIMEType: f.Mime, Text: text}}, nil
	}
	blob := base64.StdEncoding.EncodeToString(f.Data)
	return []mcp.ResourceContents{mcp.BlobResourceContents{URI: req.Params.URI, MIMEType: f.Mime, Blob: blob}}, nil
}

func (b *Bridge) findFile(uri string) (sandbox.Artifact, error) {
	id, escaped, _ := strings.Cut(strings.TrimPrefix(uri, runsURI), "/")
	r, err := b.kept.find(id)
	if err != nil {
		return sandbox.Artifact{}, err
	}
	name, err := url.PathUnescape(escaped)
	if f, ok := r.file(name); ok && err == nil {
		return f, nil
	}
	names := make([]string, 0, len(r.files))
	for _, f := range r.files {
		names = append(names, f.Name)
	}
	return sandbox.Artifact{}, &missingError{fmt.Sprintf("run %s handed over no file %.100q%s; it has: %s", id, name, didYouMean(name, names), list(names))}
}

func isText(mime string) bool {
	kind, _, _ := strings.Cut(mime, ";")
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "xml") ||
		slices.Contains([]string{"application/jsonl", "application/yaml", "application/toml"}, kind)
}
