package output

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

const (
	runsURI = "mcp-bridge://runs/"

	// FileTemplate is the URI template of a run's file, by RFC 6570.
	FileTemplate = runsURI + "{run}/{+name}"
)

// maxLinks is how many links to files a result has: each takes room in a model's context.
const maxLinks = 20

// present returns the contents of a result that stand for a run's files, in their order, and why an
// image isn't shown. Without links, text stands for the files. Files beyond maxLinks are only
// counted.
func present(run string, handed []sandbox.Artifact, links bool) (contents []mcp.Content, notices []string) {
	var shown gallery
	named := 0
	for _, f := range handed {
		if slices.Contains(imageTypes, f.Mime) {
			data, mime, why := shown.show(f.Data)
			if why == "" {
				contents = append(contents, mcp.NewImageContent(base64.StdEncoding.EncodeToString(data), mime))
				continue
			}
			size := text.Size(int64(len(f.Data)))
			notices = append(notices, fmt.Sprintf("%s (%s) is a link and not shown: %s", f.Name, size, why))
		}
		if named++; named > maxLinks {
			continue
		}
		n := int64(len(f.Data))
		if !links {
			line := fmt.Sprintf("[file %s (%s, %s): resource %s]", f.Name, f.Mime, text.Size(n), fileURI(run, f.Name))
			contents = append(contents, mcp.NewTextContent(line))
			continue
		}
		link := mcp.NewResourceLink(fileURI(run, f.Name), f.Name, text.Size(n), f.Mime)
		link.Size = &n
		contents = append(contents, link)
	}
	if named > maxLinks {
		more := text.Plural(named-maxLinks, "more file") + ", without a link here; resources/list names them"
		notices = append(notices, more)
	}
	return contents, notices
}

// maxNamedFiles is how many names the note on written files has.
const maxNamedFiles = 10

// Written writes the files into the user's directory and adds notices of their paths or of errors:
// some hosts drop links, or read them only into the context. The run's status doesn't change.
func (o *Outcome) Written(ctx context.Context, s *files.Store) {
	paths, err := s.Keep(ctx, o.Call, o.files)
	var names []string
	for i, f := range o.files {
		if p := paths[f.Name]; p != "" {
			o.Artifacts[i].Path = p
			names = append(names, f.Name)
		}
	}
	dir := filepath.Join(s.Dir(), o.Call)
	switch n := len(names); {
	case n == 1:
		o.Notices = append(o.Notices, "written to "+paths[names[0]])
	case n > maxNamedFiles:
		first := strings.Join(names[:maxNamedFiles], ", ")
		o.Notices = append(o.Notices, fmt.Sprintf("written to %s: %s and %d more", dir, first, n-maxNamedFiles))
	case n > 1:
		o.Notices = append(o.Notices, fmt.Sprintf("written to %s: %s", dir, strings.Join(names, ", ")))
	}
	if err != nil {
		why := text.Brief(text.Line(err.Error()), maxUnwritten)
		o.Notices = append(o.Notices,
			fmt.Sprintf("files were not written to %s (MCP_BRIDGE_ARTIFACTS): %s", s.Dir(), why))
	}
}

// maxUnwritten bounds, in characters, the reason why files were not written.
const maxUnwritten = 500

// fileURI names a file of a run for resources/read.
func fileURI(run, name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return runsURI + run + "/" + strings.Join(parts, "/")
}

// Template returns the resource template of files of runs.
func Template() mcp.ResourceTemplate {
	return mcp.NewResourceTemplate(FileTemplate, "run-file",
		mcp.WithTemplateDescription("A file that a run of run_python handed over; its result has the link."))
}

// A File is a file of a run that is kept.
type File struct {
	Run, Name string
	mime      string
	size      int64
}

// Files returns the files of the runs that are kept, those of the run last read first. That doesn't
// count as reading.
func (v View) Files() (all []File) {
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	for _, r := range slices.Backward(v.store.runs) {
		if r.owner != v.owner {
			continue
		}
		for _, f := range r.files {
			all = append(all, File{r.id, f.Name, f.Mime, int64(len(f.Data))})
		}
	}
	return all
}

// maxListedFiles is how many files resources/list names.
const maxListedFiles = 100

// Resources returns the files of the last runs as resources, the newest first: hosts offer listed
// resources to their users.
func (v View) Resources() []mcp.Resource {
	all := v.Files()
	resources := make([]mcp.Resource, 0, min(len(all), maxListedFiles))
	for _, f := range all[:cap(resources)] {
		r := mcp.NewResource(fileURI(f.Run, f.Name), f.Name, mcp.WithMIMEType(f.mime),
			mcp.WithResourceDescription("Handed over by run "+f.Run))
		r.Size = &f.size
		resources = append(resources, r)
	}
	return resources
}

// Resource returns what resources/read answers for the URI of a file. An error means that there is
// no such file.
func (v View) Resource(uri string) ([]mcp.ResourceContents, error) {
	f, err := v.file(uri)
	if err != nil {
		return nil, err
	}
	return []mcp.ResourceContents{contents{file: f, uri: uri}}, nil
}

// contents are those of a file. Its data is copied when they are encoded: a client that asks for
// many files and reads none must not have us hold a copy for each.
type contents struct {
	mcp.ResourceContents // nil; makes it one of these
	file                 sandbox.Artifact
	uri                  string
}

// MarshalJSON returns them as text where they are one.
func (c contents) MarshalJSON() ([]byte, error) {
	if isText(c.file.Mime) && utf8.Valid(c.file.Data) {
		return json.Marshal(mcp.TextResourceContents{URI: c.uri, MIMEType: c.file.Mime, Text: string(c.file.Data)})
	}
	return json.Marshal(mcp.BlobResourceContents{
		URI: c.uri, MIMEType: c.file.Mime, Blob: base64.StdEncoding.EncodeToString(c.file.Data),
	})
}

// RunOf returns the run whose file a URI names, or nothing.
func RunOf(uri string) string {
	rest, ok := strings.CutPrefix(uri, runsURI)
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	return id
}

func (v View) file(uri string) (sandbox.Artifact, error) {
	id, escaped, _ := strings.Cut(strings.TrimPrefix(uri, runsURI), "/")
	r, err := v.find(id)
	if err != nil {
		return sandbox.Artifact{}, err
	}
	name, err := url.PathUnescape(escaped)
	names := make([]string, 0, len(r.files))
	for _, f := range r.files {
		if f.Name == name && err == nil {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return sandbox.Artifact{}, fmt.Errorf("run %s handed over no file %.100q%s; it has: %s",
		id, name, text.DidYouMean(name, names), text.List(names))
}

func isText(mime string) bool {
	kind, _, _ := strings.Cut(mime, ";")
	return strings.HasPrefix(kind, "text/") ||
		strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "xml") ||
		slices.Contains([]string{"application/jsonl", "application/yaml", "application/toml"}, kind)
}
