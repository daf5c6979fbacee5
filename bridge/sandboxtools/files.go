package sandboxtools

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// mostRead bounds a file that is read, in bytes.
const mostRead = 1 << 20

// Encodings of a file's content.
const (
	asText   = "text"
	asBase64 = "base64"
)

func fileTools() []tool {
	id, path := field{"sandbox_id", "string", "", true}, field{"path", "string", "", true}
	encoding := field{"encoding", "encoding", "", false}
	bytes := field{"bytes", "integer", "", true}
	return []tool{
		{"sandbox_files_read", "Read a file", "Read a file of at most 1 MiB, as UTF-8 text or base64.",
			[]field{id, path, encoding},
			[]field{path, {"content", "string", "", true}, {"encoding", "string", "", true}, bytes},
			hints(true, false, true), (*call).read},
		{"sandbox_files_write", "Write a file",
			"Create or overwrite a file, of at most 8 MiB. Directories above it are made.",
			[]field{id, path, {"content", "string", "", true}, encoding}, []field{path, bytes},
			hints(false, false, true), (*call).write},
		{"sandbox_files_list", "List a directory", "List a directory's entries.",
			[]field{id, path}, []field{path, {"entries", "objects", "name, type, size, modified", true},
				{"more", "boolean", "there are more than 1000", false}},
			hints(true, false, true), (*call).entries},
		{"sandbox_files_download_dir", "Download a directory",
			"Get a directory as a ZIP file in base64, of at most 10 MiB; links are left out.",
			[]field{id, path},
			[]field{path, {"format", "string", "", true}, {"encoding", "string", "", true}, bytes,
				{"content", "string", "", true}},
			hints(true, false, true), (*call).download},
	}
}

// path returns the argument path.
func (c *call) path() string {
	p := c.text("path")
	if p == "" {
		c.fail(`argument "path" is empty; pass one such as /workspace/main.py`)
	}
	return p
}

// encoding returns the argument encoding.
func (c *call) encoding() string {
	switch e := c.text("encoding"); e {
	case "", asText, "utf-8", "utf8":
		return asText
	case asBase64:
		return e
	default:
		c.fail(`argument "encoding" must be "text" or "base64", not %.40q`, e)
		return ""
	}
}

// content is the result of sandbox_files_read and sandbox_files_download_dir.
type content struct {
	Path     string `json:"path"`
	Format   string `json:"format,omitempty"`
	Encoding string `json:"encoding"`
	Bytes    int    `json:"bytes"`
	Content  string `json:"content"`
}

// summary returns the text of the result: no model reads a zip file.
func (r content) summary() json.RawMessage {
	if r.Format != "" {
		r.Content = "in structuredContent, which this text leaves out. To have a file instead, leave it in " +
			"/workspace/out by run_python, or let the user take it by mcp-bridge sandbox cp ID:PATH ."
	}
	return text.JSON(r)
}

func (c *call) read() (any, error) {
	r := content{Path: c.path(), Encoding: c.encoding()}
	var data []byte
	err := c.within(func(g sandboxes.Guest) (err error) {
		data, err = g.ReadFile(c.ctx, r.Path, cmp.Or(c.caller.MostRead, mostRead))
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case r.Encoding == asText && !utf8.Valid(data):
		return nil, args.Errorf(`the file is no UTF-8 text; pass encoding "base64"`)
	case r.Encoding == asText:
		r.Content = string(data)
	default:
		r.Content = base64.StdEncoding.EncodeToString(data)
	}
	r.Bytes = len(data)
	return r, nil
}

func (c *call) write() (any, error) {
	path, encoding := c.path(), c.encoding()
	data := []byte(c.text("content"))
	if encoding == asBase64 {
		var err error
		if data, err = base64.StdEncoding.DecodeString(string(data)); err != nil {
			c.fail(`argument "content" is no base64: %v`, err)
		}
	}
	if len(data) > sandbox.MaxWriteFile {
		c.fail(`argument "content" is %d bytes; at most %d can be written at a time`, len(data),
			sandbox.MaxWriteFile)
	}
	err := c.within(func(g sandboxes.Guest) error { return g.WriteFile(c.ctx, path, data) })
	if err != nil {
		return nil, err
	}
	return map[string]any{"path": path, "bytes": len(data)}, nil
}

// entry is one of a directory.
type entry struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Size     int64  `json:"size"`
	Modified string `json:"modified,omitempty"`
}

func (c *call) entries() (any, error) {
	path, all, more := c.path(), []entry{}, false
	err := c.within(func(g sandboxes.Guest) error {
		files, rest, err := g.ListFiles(c.ctx, path)
		for _, f := range files {
			e := entry{Name: f.Name, Type: f.Type, Size: f.Size}
			if !f.Modified.IsZero() {
				e.Modified = f.Modified.UTC().Format(time.RFC3339)
			}
			all = append(all, e)
		}
		more = rest
		return err
	})
	if err != nil {
		return nil, err
	}
	result := map[string]any{"path": path, "entries": all}
	if more {
		result["more"] = true
	}
	return result, nil
}

func (c *call) download() (any, error) {
	path := c.path()
	var zip bytes.Buffer
	err := c.within(func(g sandboxes.Guest) error { return g.ZipDir(c.ctx, path, sandbox.MaxZip, &zip) })
	if err != nil {
		return nil, err
	}
	return content{Path: path, Format: "zip", Encoding: asBase64, Bytes: zip.Len(),
		Content: base64.StdEncoding.EncodeToString(zip.Bytes())}, nil
}
