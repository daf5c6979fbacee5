package image

import (
	"context"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
)

// host is what the machine and its apt say about where its packages come from.
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
func readHost(root fs.FS, listed []byte) host {
	release := osRelease(root)
	ids := append(strings.Fields(release["ID_LIKE"]), release["ID"])
	h := host{debianLike: slices.Contains(ids, "debian") || slices.Contains(ids, "ubuntu")}
	codename := release["VERSION_CODENAME"]
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
	for _, s := range aptSources(listed) {
		if s.suite == codename && s.component == "main" {
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
type aptSource struct{ uri, suite, component string }

// askApt returns the sources of this machine's apt, in apt's order; none where there is no apt.
func askApt(ctx context.Context) []byte {
	cmd := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)",
		"Created-By: Packages")
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	return out
}

// aptSources reads what apt lists. Only what any program could fetch is kept: http and https,
// without a password in the address.
func aptSources(listed []byte) []aptSource {
	var found []aptSource
	for line := range strings.Lines(string(listed)) {
		f := strings.Fields(line)
		if len(f) == 3 && (strings.HasPrefix(f[0], "http://") || strings.HasPrefix(f[0], "https://")) &&
			!strings.Contains(f[0], "@") {
			found = append(found, aptSource{f[0], f[1], f[2]})
		}
	}
	return found
}
