package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// Limits of files.
const (
	MaxFile   = 16 << 20  // bytes of a JSON file of the user's: ~/.claude.json holds much else
	maxSmall  = 256 << 10 // bytes of a project's or a plugin's file, and of TOML and YAML
	maxFilled = 1 << 20   // bytes of one text that is filled in
)

// A Reader reads the files of one scan, each once, and collects what is wrong with them.
type Reader struct {
	Places
	Env      Env
	Problems []Problem
	Read     []Source        // that could be read and parsed
	Listed   map[string]bool // paths that ConfigPaths lists: the user's word on them is enough

	fsys      fs.FS
	owners    trust.Owners
	documents map[string]*Document
	values    map[string]value
	names     map[string][]string        // by directory
	memory    *Memory                    // nil for none
	rules     map[string]map[string]bool // host → paths that were looked at for its word on servers
	looked    map[string]bool            // files and directories that were looked at, there or not
}

// A Document is a file as it was read. Root is empty when there isn't one, or it can't be used and
// nothing is remembered of it.
type Document struct {
	There    bool // Root counts
	Root     Object
	Rules    Object // Root, or what an exposed file holds: what that takes away counts
	Standard bool   // without comments and trailing commas
	Broken   bool   // it is there and can't be used
	Exposed  bool   // since others could have written it

	problem *Problem // what is wrong with it
}

// value is the text of a file that entries take values from, or why there isn't one.
type value struct {
	text string
	err  error
}

// NewReader returns a Reader of fsys, whose root is that of the file system. memory is of the scans
// before, and is kept up to date; it may be nil.
func NewReader(fsys fs.FS, env Env, dirs []Dir, memory *Memory) *Reader {
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	r := &Reader{
		Env: env, fsys: fsys, owners: env.Owners, documents: map[string]*Document{},
		values: map[string]value{}, names: map[string][]string{}, memory: memory, Listed: map[string]bool{},
		rules: map[string]map[string]bool{}, looked: map[string]bool{},
	}
	r.Windows = env.GOOS == "windows"
	r.Places = newPlaces(env, dirs, func(p string) bool {
		_, err := r.Stat(p)
		return err != nil || r.owners.Foreign(p)
	})
	if memory != nil && memory.scanned {
		r.by["workspace"] = memory.workspace
	}
	return r
}

// Refuse records a problem with a server, or with the whole file where server is empty. A problem
// with a file is recorded once, however often the file is asked about.
func (r *Reader) Refuse(src Source, server string, state State, why Refusal) {
	p := Problem{src, server, state, why.Reason, why.Next}
	if server != "" || !slices.Contains(r.Problems, p) {
		r.Problems = append(r.Problems, p)
	}
}

// Problem records what is malformed.
func (r *Reader) Problem(src Source, server, reason, next string) {
	state := Invalid
	if server == "" {
		state = Broken
	}
	r.Refuse(src, server, state, Refusal{reason, next})
}

// RuleFiles returns the paths that were looked at for a host's word on servers.
func (r *Reader) RuleFiles(host string) []string { return slices.Sorted(maps.Keys(r.rules[host])) }

// Looked returns the files that were looked at for servers and for rules about them, there or not.
// A directory stands for the files in it.
func (r *Reader) Looked() []string { return slices.Sorted(maps.Keys(r.looked)) }

// Rule reads a file that says something of servers.
func (r *Reader) Rule(src Source, strict bool) *Document {
	if r.rules[src.Host] == nil {
		r.rules[src.Host] = map[string]bool{}
	}
	r.rules[src.Host][src.Path], r.looked[src.Path] = true, true
	return r.Load(src, strict, false)
}

// Load reads and parses a file, and reports what is wrong with it, once.
func (r *Reader) Load(src Source, strict, required bool) *Document {
	if d, ok := r.documents[src.Path]; ok {
		return d
	}
	d, kept := r.memory.atStart(src.Path)
	if !kept {
		d = r.load(src, strict, required)
	}
	r.documents[src.Path] = d
	if d.problem != nil {
		r.Refuse(src, "", d.problem.State, Refusal{d.problem.Reason, d.problem.Next})
	} else if d.There {
		r.Read = append(r.Read, src)
	}
	return d
}

func (r *Reader) load(src Source, strict, required bool) *Document {
	data, err := r.bytes(src.Path, r.limit(src.Path))
	if err != nil {
		bad := Unreadable(err, required)
		if missing(err) {
			return new(Document).refuse(Broken, bad)
		}
		return r.broken(src.Path, bad)
	}
	root, standard, bad := Parse(src.Path, data)
	d := &Document{There: true, Root: root, Rules: root, Standard: standard}
	if err := r.owners.File(src.Path); err != nil {
		d.There, d.Root, d.Standard, d.Broken, d.Exposed = false, nil, false, true, true
		return d.refuse(Exposed, r.Others(err))
	}
	if !bad.Refused() && strict && !standard {
		bad = Refusal{"it has a comment or a trailing comma" + nonstandard(data) + ", so " + src.Host +
			" rejects the whole file", "take it out"}
	}
	if bad.Refused() {
		return r.broken(src.Path, bad)
	}
	return d
}

func (d *Document) refuse(state State, why Refusal) *Document {
	if why.Refused() {
		d.problem = &Problem{State: state, Reason: why.Reason, Next: why.Next}
	}
	return d
}

// broken returns what is remembered of a file that can't be read now.
func (r *Reader) broken(path string, why Refusal) *Document {
	d := &Document{Broken: true}
	if old := r.memory.last(path); old != nil {
		d.There, d.Root, d.Rules, d.Standard = true, old.Root, old.Rules, old.Standard
		why.Reason += "; until it can be read again, what it held before counts"
	}
	return d.refuse(Broken, why)
}

// value reads a file that entries take values from.
func (r *Reader) value(native string) (string, error) {
	v, ok := r.values[native]
	if !ok {
		var data []byte
		if data, v.err = r.bytes(native, maxFilled); v.err == nil {
			if err := r.owners.File(native); err != nil {
				v.err = r.Others(err)
			} else {
				v.text = string(data)
			}
		}
		r.values[native] = v
	}
	return v.text, v.err
}

// limit is how many bytes a file of entries or rules may have.
func (r *Reader) limit(native string) int64 {
	if strings.HasSuffix(native, ".toml") || IsYAML(native) {
		return maxSmall
	}
	p, home := r.Clean(native), r.Clean(r.Env.Home)
	for _, dir := range r.by["workspace"] {
		if strings.HasPrefix(p, dir+"/") && !strings.HasPrefix(home+"/", dir+"/") {
			return maxSmall
		}
	}
	return MaxFile
}

// Others returns what an error of a file's owners means.
func (r *Reader) Others(err error) Refusal {
	var bad *trust.Error
	if !errors.As(err, &bad) {
		return Refusal{"it can't be told who could have written it: " + err.Error(),
			"move it to a directory of your own"}
	}
	_, _ = r.Stat(bad.Path) // a watcher of the files has to see when it is mended
	return Refusal{"others could have written it: " + Show(bad.Path) + " " + bad.Why, Show(bad.Hint())}
}

// Strings reads a list of strings under a key, none if there isn't one.
func (r *Reader) Strings(src Source, o Object, key string) []string {
	v := o.Get(key)
	if v.Absent() {
		return nil
	}
	list, ok := v.Strings()
	if !ok {
		r.Problem(src, "", `its "`+key+`" is not an array of strings`, "correct it")
	}
	return list
}

// Servers returns the object under a key that holds servers, and whether the key is there at all.
func (r *Reader) Servers(src Source, o Object, key string) (group Object, there bool) {
	n := 0
	for _, m := range o {
		if m.Name == key {
			n++
		}
	}
	if n > 1 {
		r.Problem(src, "", `it has "`+key+`" more than once; only the last one counts`, "merge them into one")
	}
	v := o.Get(key)
	group, ok := v.Object()
	if !ok && !v.Absent() {
		r.Problem(src, "", `its "`+key+`" is `+v.Kind()+", not an object",
			`write {"`+key+`": {"name": {"command": "…"}}}`)
	}
	return group, n > 0
}

// Settings returns the files of a host that are there, in their order, for what they say beside
// servers. What an exposed one takes away is among its Rules.
func (r *Reader) Settings(host string, files []File) (all []Setting) {
	for i := range files {
		for _, p := range r.Expand(files[i].Paths) {
			sources, ok := r.Sources(Source{Host: host, Scope: files[i].Scope, Path: p}, false)
			if !ok {
				dir, _ := r.Directory(p)
				src := Source{Host: host, Scope: files[i].Scope, Path: dir}
				all = append(all, Setting{&Document{Broken: true}, src, &files[i]})
			}
			for _, src := range sources {
				all = append(all, Setting{r.Rule(src, false), src, &files[i]})
			}
		}
	}
	return all
}

// A Setting is one of a host's files that was read for what it says beside servers.
type Setting struct {
	*Document
	Source Source
	File   *File
}

// TrustedOnly returns Rules.Approved of a host that uses a project's servers once its user has told
// program to trust the project's directory.
func (r *Reader) TrustedOnly(host, program string, trusts func(dir string) bool) func(*Entry) Refusal {
	return func(e *Entry) Refusal {
		dir := r.ProjectOf(e.Source.Path)
		if e.File.Approval == None || trusts(dir) {
			return Refusal{}
		}
		return Refusal{host + " isn't told to trust " + r.Folder(dir, "this folder"),
			"start " + program + " in " + r.Folder(dir, "this directory") + " and trust it, or " + ListIt}
	}
}

// Bounded returns rules about tools, the last of them from src; where they are too many, one that
// hides all tools.
func (r *Reader) Bounded(src Source, rules []ToolRule) []ToolRule {
	if len(rules) <= MaxRules {
		return rules
	}
	r.Problem(src, "", fmt.Sprintf("with it there are more than %d rules about tools; all tools of %s's "+
		"servers are hidden", MaxRules, src.Host), "take out what isn't needed")
	return []ToolRule{{Pattern: "*", Deny: true, From: src}}
}
