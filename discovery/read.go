package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

const (
	maxFile    = 16 << 20  // bytes of one JSON file of the user's, such as ~/.claude.json, which holds much else
	maxSmall   = 256 << 10 // bytes of one TOML or YAML file, whose parsers take long, and of a file that a project or a plugin brings along
	maxMembers = 1 << 13   // tables and keys of one TOML file: its parser takes time in proportion to their square
	maxDepth   = 200       // of nested objects and arrays: the parser recurses
)

// file is a file as it was read. Root is nil when there is none, or it can't be used and nothing is remembered of it.
type file struct {
	root     *hujson.Object
	rules    *hujson.Object // root, or what an exposed file holds: what that takes away counts, what it gives doesn't
	standard bool           // without comments and trailing commas
	broken   bool           // it is there and can't be used
	exposed  bool           // since others could have written it
}

// fsName is a path as an fs.FS wants it.
func (s *scan) fsName(native string) string {
	if s.env.GOOS == "windows" {
		native = strings.ReplaceAll(native, `\`, "/")
	}
	if p := strings.TrimPrefix(path.Clean("/"+native), "/"); p != "" {
		return p
	}
	return "."
}

func (s *scan) stat(native string) (fs.FileInfo, error) { return fs.Stat(s.fsys, s.fsName(native)) }

// list is the names of the files in a directory, hidden ones left out, sorted: of the *.json files, and of the *.yaml and *.yml
// files too where the ending is .yaml.
func (s *scan) list(dir, ending string) ([]string, error) {
	names, err := s.names(dir)
	return slices.DeleteFunc(names, func(n string) bool { return path.Ext(n) != ".json" && (ending != ".yaml" || !isYAML(n)) }), err
}

// names is what there is in a directory, hidden things left out, sorted.
func (s *scan) names(dir string) ([]string, error) {
	info, err := s.stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, unfit("it is not a directory")
	}
	entries, err := fs.ReadDir(s.fsys, s.fsName(dir))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); !strings.HasPrefix(n, ".") {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names, nil
}

// load reads and parses a file, and reports what is wrong with it, once.
func (s *scan) load(src Source, strict, required bool) *file {
	if !s.readingRow {
		if s.ruleFiles[src.Host] == nil {
			s.ruleFiles[src.Host] = map[string]bool{}
		}
		s.ruleFiles[src.Host][src.Path] = true
	}
	if f, ok := s.files[src.Path]; ok {
		return f
	}
	f := &file{}
	s.files[src.Path] = f
	data, err := s.bytes(src.Path, s.limit(src.Path))
	if err != nil {
		reason, next := unreadable(err, required)
		f.broken = reason != "" && !missing(err)
		if reason != "" {
			s.broken(src, f, refusal{reason, next})
		}
		return f
	}
	root, standard, bad := parse(src.Path, data)
	if err := s.owners.File(src.Path); err != nil {
		f.broken, f.exposed, f.rules = true, true, root
		reason, next := s.others(err)
		s.refuse(src, "", Exposed, refusal{reason, next})
		return f
	}
	if bad.reason == "" && strict && !standard {
		bad = refusal{"it has a comment or a trailing comma" + nonstandard(data) + ", so " + src.Host + " rejects the whole file", "take it out"}
	}
	if bad.reason != "" {
		f.broken = true
		s.broken(src, f, bad)
		return f
	}
	f.root, f.rules, f.standard = root, root, standard
	s.remember(src.Path, f)
	s.number(src)
	s.read = append(s.read, src)
	return f
}

// broken reports a file, and takes what is remembered of it.
func (s *scan) broken(src Source, f *file, why refusal) {
	if s.remember(src.Path, f) {
		why.reason += "; until it can be read again, what it held before counts"
	}
	s.problem(src, "", why.reason, why.next)
}

// missing says whether an error means that there is no such file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// limit is how many bytes a file of entries or rules may have.
func (s *scan) limit(native string) int64 {
	if strings.HasSuffix(native, ".toml") || isYAML(native) {
		return maxSmall
	}
	p, home := s.places.clean(native), s.places.clean(s.env.Home)
	for _, dir := range slices.Concat(s.places.by["workspace"], s.places.by["plugins"]) {
		if strings.HasPrefix(p, dir+"/") && !strings.HasPrefix(home+"/", dir+"/") {
			return maxSmall
		}
	}
	return maxFile
}

// value is the text of a file that entries take values from, or why there is none.
type value struct {
	text string
	err  error
}

// value reads one, if it hasn't been read yet: any number of entries may name it, any number of times.
func (s *scan) value(native string) (string, error) {
	s.taken = append(s.taken, native)
	v, ok := s.values[native]
	if !ok {
		var data []byte
		if data, v.err = s.bytes(native, maxFilled); v.err == nil {
			if err := s.owners.File(native); err != nil {
				reason, next := s.others(err)
				v.err = &exposedError{refusal{reason, next}}
			} else {
				v.text = string(data)
			}
		}
		s.values[native] = v
	}
	return v.text, v.err
}

// bytes is what a regular file holds. It looks before it opens: opening a pipe would wait for a writer.
func (s *scan) bytes(native string, limit int64) ([]byte, error) {
	info, err := s.stat(native)
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, unfit("it is a directory, not a file")
	case !info.Mode().IsRegular():
		return nil, unfit("it is not a regular file")
	case info.Size() > limit:
		return nil, tooLarge(limit)
	}
	f, err := s.fsys.Open(s.fsName(native))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) // a size may be untrue, as in /proc
	if err == nil && int64(len(data)) > limit {
		return nil, tooLarge(limit)
	}
	return data, err
}

// unfit is what is wrong with something that could be read.
type unfit string

func (u unfit) Error() string { return string(u) }

func tooLarge(limit int64) error {
	return unfit(fmt.Sprintf("it is larger than %d KiB, which is the limit", limit>>10))
}

// unreadable says what an error of the file system means for who wrote the path. A file that needn't be there and isn't
// is no reason.
func unreadable(err error, required bool) (reason, next string) {
	var pathErr *fs.PathError
	var wrong unfit
	var exposed *exposedError
	if errors.As(err, &pathErr) {
		err = pathErr.Err // the path is the source's
	}
	switch {
	case missing(err):
		if !required {
			return "", ""
		}
		return "it does not exist", "make it, or take it out of MCP_BRIDGE_CONFIG"
	case errors.As(err, &exposed):
		return exposed.reason, exposed.next
	case errors.Is(err, fs.ErrPermission):
		return "it can't be read: permission denied", "make it readable for the user that runs mcp-bridge"
	case errors.Is(err, fs.ErrInvalid):
		return "its path is not one that can be opened", "correct the path"
	case errors.As(err, &wrong):
		return wrong.Error(), "move it away, or make it what it should be"
	}
	return "it can't be read: " + err.Error(), "correct or remove it"
}

// refusal is why something isn't used, and what to do about it. Its zero value refuses nothing.
type refusal struct{ reason, next string }

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// parse is the object that a file holds, or why it holds none. It quotes no more of the file than one character.
func parse(name string, data []byte) (root *hujson.Object, standard bool, bad refusal) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	blank := len(bytes.TrimSpace(data)) == 0
	utf16 := bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
	switch {
	case utf16:
		return nil, false, refusal{"it is written in UTF-16", "save it as UTF-8"}
	case bytes.IndexByte(data, 0) >= 0:
		return nil, false, refusal{"it has a NUL byte" + at(data, bytes.IndexByte(data, 0)), "save it as UTF-8 text"}
	case !utf8.Valid(data):
		return nil, false, refusal{"it is not UTF-8" + at(data, invalidUTF8(data)), "save it as UTF-8"}
	case strings.HasSuffix(name, ".toml"):
		root, bad = parseTOML(data)
		return root, true, bad
	case isYAML(name):
		root, bad = parseYAML(data)
		return root, true, bad
	case blank:
		return nil, false, refusal{"it is empty", "write {} into it, or remove it"}
	}
	return parseJSON(data)
}

func parseJSON(data []byte) (root *hujson.Object, standard bool, bad refusal) {
	if i := tooDeep(data); i >= 0 {
		return nil, false, refusal{fmt.Sprintf("it nests more than %d levels deep%s", maxDepth, at(data, i)), "correct it there"}
	}
	v, err := hujson.Parse(data)
	if err != nil {
		what, where := syntax(err)
		return nil, false, refusal{"it is not valid JSON: " + what + where, "correct it there"}
	}
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, false, refusal{"it holds " + kind(&v) + ", not an object", `write {"mcpServers": {…}}`}
	}
	return o, v.IsStandard(), refusal{}
}

// nonstandard is where plain JSON ends in a file that has comments or trailing commas.
func nonstandard(data []byte) string {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var e *json.SyntaxError
	if err := json.Unmarshal(data, new(any)); errors.As(err, &e) && e.Offset > 0 {
		return at(data, int(e.Offset)-1)
	}
	return ""
}

// syntax tells an error of the parser without its quotes from the file: a malformed literal may be a secret.
func syntax(err error) (what, where string) {
	var line, column int
	if _, e := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); e == nil {
		where = fmt.Sprintf(" at line %d, column %d", line, column)
	}
	inner := errors.Unwrap(err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early", where
	case inner != nil && strings.HasPrefix(inner.Error(), "invalid character "):
		return inner.Error(), where
	}
	return "a value is malformed", where
}

// at is a position as editors count it: lines and bytes of a line, from one.
func at(data []byte, offset int) string {
	before := data[:offset]
	return fmt.Sprintf(" at line %d, column %d", 1+bytes.Count(before, []byte("\n")), offset-bytes.LastIndexByte(before, '\n'))
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return 0
}

// tooDeep is where data nests deeper than maxDepth, -1 if nowhere. It reads strings and comments as the parser does, which
// has no such limit and would run out of stack.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			end := ""
			switch {
			case bytes.HasPrefix(data[i:], []byte("//")):
				end = "\n"
			case bytes.HasPrefix(data[i:], []byte("/*")):
				end = "*/"
			default:
				return -1 // the parser stops here
			}
			n := bytes.Index(data[i+2:], []byte(end))
			if n < 0 {
				return -1
			}
			i += 2 + n + len(end) - 1
		}
	}
	return -1
}
