package image

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestReadHost(t *testing.T) {
	const bookworm = "ID=debian\nNAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\n"
	debian := host{name: "Debian", debianLike: true, mirror: "http://deb.debian.org/debian",
		suites: []string{"stable", "bookworm"}}
	at := func(h host, mirror string) host { h.mirror = mirror; return h }
	tests := []struct {
		name  string
		files map[string]string
		want  host
	}{
		{"nothing known", nil, host{name: "Debian", mirror: "http://deb.debian.org/debian",
			suites: []string{"stable"}}},
		{"another family", map[string]string{"etc/os-release": "ID=fedora\n"},
			host{name: "Debian", mirror: "http://deb.debian.org/debian", suites: []string{"stable"}}},
		{"no sources", map[string]string{"usr/lib/os-release": bookworm}, debian},
		{"stanzas", map[string]string{
			"etc/os-release": bookworm,
			"etc/apt/sources.list.d/debian.sources": "Types: deb\n# was http://old.example/debian\nURIs:" +
				" http://one.example/debian\n http://two.example/debian\n" +
				"Suites: bookworm bookworm-updates\nComponents: main\n\nTypes: deb\nURIs:" +
				" http://security.example/debian\nSuites: bookworm-security\nComponents: main\n",
		}, at(debian, "http://one.example/debian")},
		{"a stanza that is off, and sources only", map[string]string{
			"etc/os-release": bookworm,
			"etc/apt/sources.list.d/a.sources": "Types: deb\nEnabled: no\nURIs: http://off.example/debian\nSuites:" +
				" bookworm\nComponents: main\n\n\n" +
				"Types: deb-src\nURIs: http://src.example/debian\nSuites: bookworm\nComponents: main\n",
		}, debian},
		{"lines, with options and comments", map[string]string{
			"etc/os-release": bookworm,
			"etc/apt/sources.list": "# deb http://off.example/debian bookworm main\ndeb-src " +
				"http://src.example/debian" +
				" bookworm main\ndeb [arch=amd64 signed-by=/k.gpg] https://on.example/debian bookworm main contrib #" +
				" ours\n",
		}, at(debian, "https://on.example/debian")},
		{"another project's packages", map[string]string{
			"etc/os-release":                       bookworm,
			"etc/apt/sources.list.d/node.list":     "deb https://deb.example/node nodistro main\n",
			"etc/apt/sources.list.d/cloud.list":    "deb https://deb.example/cloud bookworm cloud\n",
			"etc/apt/sources.list.d/broken.list":   "deb\ndeb http://\n",
			"etc/apt/sources.list.d/notes.txt":     "deb http://notes.example/debian bookworm main\n",
			"etc/apt/sources.list.d/cdrom.list":    "deb cdrom:[Debian]/ bookworm main\n",
			"etc/apt/sources.list.d/mirrored.list": "deb mirror+file:/etc/apt/mirrors/debian.list bookworm main\n",
		}, debian},
		{"an address with a password is not passed on", map[string]string{
			"etc/os-release":       bookworm,
			"etc/apt/sources.list": "deb http://me:secret@on.example/debian bookworm main\n",
		}, debian},
		{"Ubuntu", map[string]string{
			"etc/os-release": "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n",
			"etc/apt/sources.list.d/ubuntu.sources": "Types: deb\nURIs: http://uk.example/ubuntu/\nSuites: noble" +
				" noble-updates\nComponents: main universe\n",
		}, host{name: "Ubuntu", debianLike: true, mirror: "http://uk.example/ubuntu/", suites: []string{"noble"}}},
		{"a relative of Ubuntu", map[string]string{
			"etc/os-release": "ID=linuxmint\nID_LIKE=\"ubuntu" +
				" debian\"\nVERSION_CODENAME=wilma\nUBUNTU_CODENAME=noble\n",
		}, host{name: "Ubuntu", debianLike: true, mirror: "http://archive.ubuntu.com/ubuntu",
			suites: []string{"noble"}}},
		{"a relative of " +
			"Debian", map[string]string{"etc/os-release": "ID=kali\nID_LIKE=debian\nVERSION_CODENAME=kali-rolling\n"},
			host{name: "Debian", debianLike: true, mirror: "http://deb.debian.org/debian",
				suites: []string{"stable"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for name, text := range tt.files {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if diff := cmp.Diff(tt.want, readHost(fsys), cmp.AllowUnexported(host{})); diff != "" {
				t.Errorf("readHost (-want +got):\n%s", diff)
			}
		})
	}
}
