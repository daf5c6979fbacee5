package image

import (
	"bufio"
	"bytes"
	"io/fs"
	"slices"
	"strings"
)

// host is what the machine's own files say about where its packages come from.
type host struct {
	name       string // "Debian" or "Ubuntu"
	debianLike bool   // the machine itself is one of the two or a relative
	mirror     string // where those packages are, the machine's own source if it has one
	suites     []string
}

// readHost finds the releases to try, the best first. Debian's stable has the newest Python that a
// release with security support has, and it is served beside the machine's own release; Ubuntu
// signs all of its releases alike, but serves no "stable", so there it is the machine's own. Where
// nothing is known it is Debian's.
func readHost(root fs.FS) host {
	release := osRelease(root)
	ids := append(strings.Fields(release["ID_LIKE"]), release["ID"])
	h := host{debianLike: slices.Contains(ids, "debian") || slices.Contains(ids, "ubuntu")}
	codename := release["VERSION_CODENAME"]
	sources := aptSources(root)
	if slices.Contains(ids, "ubuntu") {
		if release["ID"] != "ubuntu" {
			codename = release["UBUNTU_CODENAME"] // a relative with names of its own
		}
		h.name, h.suites, h.mirror = "Ubuntu", []string{codename}, "http://archive.ubuntu.com/ubuntu"
	}
	if codename == "" || h.name == "" {
		h.name, h.suites, h.mirror = "Debian", []string{"stable"}, "http://deb.debian.org/debian"
		if release["ID"] == "debian" && codename != "" {
			h.suites = append(h.suites, codename)
		}
	}
	for _, s := range sources {
		if slices.Contains(s.suites, codename) && slices.Contains(s.components, "main") {
			h.mirror = s.uri
			break
		}
	}
	return h
}

func osRelease(root fs.FS) map[string]string {
	fields := map[string]string{}
	for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
		b, err := fs.ReadFile(root, name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				fields[k] = strings.Trim(v, `"'`)
			}
		}
		break
	}
	return fields
}

// aptSource is one place that apt takes packages from.
type aptSource struct {
	uri                string
	suites, components []string
}

// aptSources reads apt's lists in both of their forms, in apt's order. Only what any program could
// fetch is kept: http and https, without a password in the address. What can't be read or
// understood is left out.
func aptSources(root fs.FS) []aptSource {
	var found []aptSource
	read := func(name string, parse func([]byte) []aptSource) {
		if b, err := fs.ReadFile(root, name); err == nil {
			found = append(found, parse(b)...)
		}
	}
	read("etc/apt/sources.list", oneLineSources)
	entries, _ := fs.ReadDir(root, "etc/apt/sources.list.d")
	for _, e := range entries {
		switch name := "etc/apt/sources.list.d/" + e.Name(); {
		case strings.HasSuffix(name, ".list"):
			read(name, oneLineSources)
		case strings.HasSuffix(name, ".sources"):
			read(name, stanzaSources)
		}
	}
	return slices.DeleteFunc(found, func(s aptSource) bool {
		return !strings.HasPrefix(s.uri, "http://") && !strings.HasPrefix(s.uri, "https://") ||
			strings.Contains(s.uri, "@")
	})
}

// oneLineSources reads lines such as "deb [signed-by=…] http://deb.debian.org/debian bookworm
// main".
func oneLineSources(b []byte) []aptSource {
	var found []aptSource
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !ok {
			continue
		}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			_, rest, _ = strings.Cut(rest, "]")
		}
		if f := strings.Fields(rest); len(f) >= 3 {
			found = append(found, aptSource{uri: f[0], suites: f[1:2], components: f[2:]})
		}
	}
	return found
}

// stanzaSources reads paragraphs of fields, as in "URIs: http://deb.debian.org/debian".
func stanzaSources(b []byte) []aptSource {
	var found []aptSource
	fields := map[string]string{}
	end := func() {
		if slices.Contains(strings.Fields(fields["types"]), "deb") && !strings.EqualFold(fields["enabled"], "no") {
			for _, uri := range strings.Fields(fields["uris"]) {
				found = append(found, aptSource{uri, strings.Fields(fields["suites"]),
					strings.Fields(fields["components"])})
			}
		}
		clear(fields)
	}
	key := ""
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		line := sc.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			end()
		case line[0] == ' ' || line[0] == '\t':
			fields[key] += " " + strings.TrimSpace(line)
		default:
			k, v, _ := strings.Cut(line, ":")
			key = strings.ToLower(k)
			fields[key] = strings.TrimSpace(v)
		}
	}
	end()
	return found
}
