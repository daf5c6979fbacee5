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
		apt   string // what it lists
		want  host
	}{
		{"nothing known", nil, "", host{name: "Debian", mirror: "http://deb.debian.org/debian",
			suites: []string{"stable"}}},
		{"another family", map[string]string{"etc/os-release": "ID=fedora\n"}, "",
			host{name: "Debian", mirror: "http://deb.debian.org/debian", suites: []string{"stable"}}},
		{"no sources", map[string]string{"usr/lib/os-release": bookworm}, "", debian},
		{"the first of the release", map[string]string{"etc/os-release": bookworm},
			"http://security.example/debian bookworm-security main\nhttp://one.example/debian bookworm main\n" +
				"http://two.example/debian bookworm main\n", at(debian, "http://one.example/debian")},
		{"another project's packages", map[string]string{"etc/os-release": bookworm},
			"https://deb.example/node nodistro main\nhttps://deb.example/cloud bookworm cloud\nno such line\n",
			debian},
		{"what only apt can fetch", map[string]string{"etc/os-release": bookworm},
			"cdrom:[Debian]/ bookworm main\nmirror+file:/etc/apt/mirrors/debian.list bookworm main\n" +
				"http://me:secret@on.example/debian bookworm main\n", debian},
		{"Ubuntu", map[string]string{"etc/os-release": "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n"},
			"http://uk.example/ubuntu/ noble universe\nhttp://uk.example/ubuntu/ noble main\n",
			host{name: "Ubuntu", debianLike: true, mirror: "http://uk.example/ubuntu/", suites: []string{"noble"}}},
		{"a relative of Ubuntu", map[string]string{
			"etc/os-release": "ID=linuxmint\nID_LIKE=\"ubuntu" +
				" debian\"\nVERSION_CODENAME=wilma\nUBUNTU_CODENAME=noble\n",
		}, "", host{name: "Ubuntu", debianLike: true, mirror: "http://archive.ubuntu.com/ubuntu",
			suites: []string{"noble"}}},
		{"a relative of " +
			"Debian", map[string]string{"etc/os-release": "ID=kali\nID_LIKE=debian\nVERSION_CODENAME=kali-rolling\n"},
			"", host{name: "Debian", debianLike: true, mirror: "http://deb.debian.org/debian",
				suites: []string{"stable"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for name, text := range tt.files {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if diff := cmp.Diff(tt.want, readHost(fsys, []byte(tt.apt)), cmp.AllowUnexported(host{})); diff != "" {
				t.Errorf("readHost (-want +got):\n%s", diff)
			}
		})
	}
}
