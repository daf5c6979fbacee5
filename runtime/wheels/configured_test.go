package wheels

import (
	"io/fs"
	"strings"
	"testing"
)

func TestIndexFrom(t *testing.T) {
	const there = "https://x.example/simple"
	for _, tt := range []struct{ name, value, want string }{
		{"UV_DEFAULT_INDEX", there + "?a=b", there + "?a=b"},
		{"UV_DEFAULT_INDEX", "company=" + there, there},
		{"UV_INDEX_URL", there, there},
		{"PIP_INDEX_URL", there, there},
		{"PIP_EXTRA_INDEX_URL", there, ""},
		{"/home/u/.config/uv/uv.toml", "index-url = '" + there + "'", there},
		{"/etc/uv/uv.toml", "[pip]\nindex-url = '" + there + "'", there},
		{"/home/u/.config/uv/uv.toml", "[[index]]\nurl = 'https://other'\n[[index]]\nurl = '" + there +
			"'\ndefault = true",
			there},
		{"/home/u/.config/uv/uv.toml", "[[index]]\nurl = 'https://other'", ""},
		{"/home/u/.config/uv/uv.toml", "index-url = ", ""},
		{"/home/u/.config/pip/pip.conf", "[global]\ntimeout = 60\nindex-url = " + there + "\n", there},
		{"/home/u/.pip/pip.conf", "[global]\nindex_url=" + there, there},
		{"/etc/pip.conf", "[search]\nindex-url = " + there, ""},
		{"/home/u/elsewhere.conf", "[global]\nindex-url = " + there, there},
	} {
		env := map[string]string{"HOME": "/home/u", "PIP_CONFIG_FILE": "/home/u/elsewhere.conf"}
		files := map[string]string{"/etc/pip.conf": ""}
		if strings.HasPrefix(tt.name, "/") {
			files[tt.name] = tt.value
		} else {
			env[tt.name] = tt.value
		}
		got, ofUV := IndexFrom(func(name string) string { return env[name] }, func(file string) ([]byte, error) {
			text, has := files[file]
			if !has {
				return nil, fs.ErrNotExist
			}
			return []byte(text), nil
		})
		if uv := got != "" && strings.Contains(strings.ToLower(tt.name), "uv"); got != tt.want || ofUV != uv {
			t.Errorf("%s=%s: got %s, want %s; of uv: %v", tt.name, tt.value, got, tt.want, ofUV)
		}
	}
}

func TestProxyFrom(t *testing.T) {
	const conf = "/home/u/.config/pip/pip.conf"
	for _, tt := range []struct{ variable, file, want string }{
		{"", "", ""},
		{"", "[global]\nproxy = http://u:p@p.example:3128\n", "http://u:p@p.example:3128"},
		{"", "[install]\nproxy = http://p.example:3128\n", ""},
		{"p.example:3128", "[global]\nproxy = http://other\n", "http://p.example:3128"},
	} {
		env := map[string]string{"HOME": "/home/u", "PIP_PROXY": tt.variable}
		got := ProxyFrom(func(name string) string { return env[name] }, func(file string) ([]byte, error) {
			if file != conf {
				return nil, fs.ErrNotExist
			}
			return []byte(tt.file), nil
		})
		if got != tt.want {
			t.Errorf("PIP_PROXY=%s and %q: got %q, want %q", tt.variable, tt.file, got, tt.want)
		}
	}
}

// TestUVSettings: of what uv's files say, only where packages come from is kept.
func TestUVSettings(t *testing.T) {
	const mine, machine, other = "/home/u/.config/uv/uv.toml", "/etc/uv/uv.toml", "/home/u/other.toml"
	files := map[string]string{
		mine: "no-build = false\nno-binary-package = [\"x\"]\n[[index]]\nname = \"co\"\n" +
			"url = \"https://co.example\"\n[pip]\nno-binary = [\":all:\"]\n" +
			"extra-index-url = [\"https://more.example\"]\n",
		machine: "native-tls = true\nextra-index-url = [\"https://overruled.example\"]\n",
		other:   "index-strategy = \"unsafe-best-match\"\n",
	}
	read := func(file string) ([]byte, error) {
		if text, has := files[file]; has {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	for named, want := range map[string]string{
		"": "extra-index-url = ['https://more.example']\nnative-tls = true\n\n[[index]]\nname = 'co'\n" +
			"url = 'https://co.example'\n",
		other: "index-strategy = 'unsafe-best-match'\n",
		"/no": "",
	} {
		env := map[string]string{"HOME": "/home/u", "UV_CONFIG_FILE": named}
		got, err := UVSettings(func(name string) string { return env[name] }, read, true)
		if err != nil || string(got) != want {
			t.Errorf("with %q: got %q, %v; want %q", named, got, err, want)
		}
	}
	home := func(name string) string { return map[string]string{"HOME": "/home/u"}[name] }
	if got, err := UVSettings(home, read, false); err != nil || string(got) != "native-tls = true\n" {
		t.Errorf("without indexes: got %q, %v", got, err)
	}
	files[mine] = "index = "
	if _, err := UVSettings(home, read, true); err == nil || !strings.Contains(err.Error(), mine) {
		t.Errorf("got %v of a file that is no TOML", err)
	}
}
