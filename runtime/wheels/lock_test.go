package wheels

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// oneWheel returns a lock of example with the line that is its wheel, or what is there instead.
func oneWheel(lines ...string) string {
	return "lock-version = \"1.0\"\n[[packages]]\nname = \"example\"\nversion = \"1.0\"\n" +
		strings.Join(lines, "\n")
}

var zeros = strings.Repeat("0", 64)

func TestBadLocks(t *testing.T) {
	hashed := "hashes = { sha256 = \"" + zeros + "\" }"
	wheels := func(fields string) string { return oneWheel("wheels = [{ " + fields + " }]") }
	good := `url = "https://x.example/` + exampleFile + `"`
	large := "lock-version = \"1.0\"\n"
	for _, name := range []string{"a", "b", "c"} {
		large += fmt.Sprintf("[[packages]]\nname = %q\n"+
			"wheels = [{ url = 'https://x.example/%s-1.0-py3-none-any.whl', size = 1000000000, %s }]\n",
			name, name, hashed)
	}
	tests := []struct{ name, lock, want string }{
		{"no TOML", "[", "no pylock.toml"},
		{"no lock", "", `lock-version ""`},
		{"newer", strings.Replace(oneWheel(), "1.0", "1.1", 1), "only 1.0 is known: make one"},
		{"no packages", `lock-version = "1.0"`, "0 packages"},
		{"too many", "lock-version = \"1.0\"\n" + strings.Repeat("[[packages]]\nname = \"x\"\n", maxPackages+1),
			"2001 packages"},
		{"too long", strings.Repeat("#", maxLock+1), "at most"},
		{"name", strings.Replace(oneWheel(), "example", "../x", 1), "no name of a package"},
		{"no hashes", wheels(good), "has no sha256 in the lock"},
		{"other hash only", wheels(good + `, hashes = { md5 = "00" }`), "has no sha256 in the lock"},
		{"short hash", wheels(good + `, hashes = { sha256 = "00" }`), "has no sha256 in the lock"},
		{"path", wheels(`name = "` + exampleFile + `", path = "x.whl", ` + hashed), "has no https URL"},
		{"file URL", wheels(`url = "file:///x/` + exampleFile + `", ` + hashed), "has no https URL"},
		{"no host", wheels(`url = "https:///x/` + exampleFile + `", ` + hashed), "has no https URL"},
		{"large together", large, "the wheels have 3000000000 bytes"},
		{"no wheel", wheels(`url = "https://x.example/example-1.0.tar.gz", ` + hashed), "no file name of a wheel"},
		{"name of a file elsewhere", wheels(`name = "../` + exampleFile + `", ` + good + `, ` + hashed),
			"no file name of a wheel"},
		{"other package", wheels(`url = "https://x.example/other-1.0-py3-none-any.whl", ` + hashed),
			"another package"},
		{"other version", wheels(`url = "https://x.example/example-2.0-py3-none-any.whl", ` + hashed),
			"another version"},
		{"large", wheels(good + `, size = 2000000000, ` + hashed), "at most 1073741824"},
		{"negative", wheels(good + `, size = -1, ` + hashed), "at most 1073741824"},
		{"sdist", oneWheel(`sdist = { url = "https://x.example/x.tar.gz" }`), "no wheel of it"},
		{"vcs", oneWheel(`vcs = { type = "git" }`), "no wheel of it"},
		{"directory", oneWheel(`directory = { path = "." }`), "no wheel of it"},
		{"archive", oneWheel(`archive = { path = "x.zip" }`), "no wheel of it"},
		{"nothing", oneWheel(), "no wheel of it"},
		{"Python", strings.Replace(wheels(good+","+hashed), "[[", "requires-python = \">=3.14\"\n[[", 1),
			"the lock requires Python >=3.14, and there is CPython 3.13.1"},
		{"Python of a package", oneWheel(`requires-python = "<3.13"`), "it requires Python <3.13"},
		{"environments", strings.Replace(wheels(good+","+hashed), "[[", "environments = [\"sys_platform == "+
			"'win32'\", \"os_name == 'nt'\"]\n[[", 1), "was not made for"},
		{"marker", oneWheel(`marker = "python_version >"`), "the marker"},
		{"groups", oneWheel(`marker = "'dev' in dependency_groups"`),
			`what "dependency_groups" stands for isn't known`},
		{"no fit", wheels(`url = "https://x.example/example-1.0-cp312-cp312-win_amd64.whl", ` + hashed),
			"none of its 1 wheels"},
		{"twice", wheels(good+","+hashed) + "\n" + strings.TrimPrefix(wheels(good+","+hashed),
			"lock-version = \"1.0\"\n"), "two versions of example"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Parse([]byte(tt.lock))
			if err == nil {
				_, err = l.Choose(python)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	arm, musl, old := python, python, python
	arm.Machine = "aarch64"
	musl.Glibc, musl.Musl = "", "1.2"
	old.Glibc = "2.17"
	tests := []struct {
		name string
		ip   Interpreter
		tags string // of the wheels on offer; the first one fits best, and those after a bar don't fit
	}{
		{name: "newest glibc first", ip: python, tags: "cp313-cp313-manylinux_2_28_x86_64 " +
			"cp313-cp313-manylinux2014_x86_64 cp313-cp313-manylinux1_x86_64"},
		{name: "several tags", ip: python, tags: "cp313-cp313-manylinux_2_28_x86_64.manylinux_2_17_x86_64 " +
			"cp313-cp313-manylinux_2_17_x86_64"},
		{name: "old glibc", ip: old, tags: "cp313-cp313-manylinux2014_x86_64 | cp313-cp313-manylinux_2_18_x86_64"},
		{name: "abi3", ip: python, tags: "cp39-abi3-manylinux2014_x86_64 py3-none-any | " +
			"cp314-abi3-manylinux2014_x86_64 cp39-cp39-manylinux2014_x86_64"},
		{name: "own ABI", ip: python, tags: "cp313-cp313-manylinux2014_x86_64 cp313-abi3-manylinux2014_x86_64 | " +
			"cp313-cp313t-manylinux2014_x86_64"},
		{name: "pure", ip: python, tags: "py2.py3-none-any | py2-none-any py314-none-any cp313-cp313-win_amd64 " +
			"cp313-cp313-macosx_11_0_arm64"},
		{name: "aarch64", ip: arm, tags: "cp313-cp313-manylinux_2_17_aarch64 | cp313-cp313-manylinux_2_17_x86_64 " +
			"cp313-cp313-manylinux1_aarch64"},
		{name: "musl", ip: musl, tags: "cp313-cp313-musllinux_1_2_x86_64 cp313-cp313-musllinux_1_1_x86_64 | " +
			"cp313-cp313-musllinux_1_3_x86_64 cp313-cp313-manylinux2014_x86_64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fit, unfit, _ := strings.Cut(tt.tags, "|")
			fits, lines := strings.Fields(fit), ""
			for _, tag := range append(strings.Fields(unfit), fits...) {
				lines += fmt.Sprintf("{ url = 'https://x.example/example-1.0-%s.whl?x#y', hashes = { sha256 = '%s' } },",
					tag, zeros)
			}
			for i, want := range fits {
				l, err := Parse([]byte(oneWheel("wheels = [" + lines + "]")))
				if err != nil {
					t.Fatal(err)
				}
				chosen, err := l.Choose(tt.ip)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := chosen[0].File, "example-1.0-"+want+".whl"; got != want {
					t.Errorf("place %d: got %s, want %s", i, got, want)
				}
				lines = strings.Replace(lines, "example-1.0-"+want+".whl", "example-1.0-cp27-cp27m-any.whl", 1)
			}
			l, err := Parse([]byte(oneWheel("wheels = [" + lines + "]")))
			if err != nil {
				t.Fatal(err)
			}
			if chosen, err := l.Choose(tt.ip); err == nil {
				t.Errorf("got %s", chosen[0].File)
			}
		})
	}
}

// TestBuilds takes the highest build of equal wheels.
func TestBuilds(t *testing.T) {
	for _, tt := range []struct{ a, b string }{{"", "1-"}, {"9-", "10-"}, {"1-", "1a-"}, {"01-", "2-"}} {
		var lines string
		for _, build := range []string{tt.b, tt.a} {
			lines += fmt.Sprintf("{ url = 'https://x.example/example-1.0-%spy3-none-any.whl', hashes = { sha256 = "+
				"'%s' } },", build, zeros)
		}
		l, err := Parse([]byte(oneWheel("wheels = [" + lines + "]")))
		if err != nil {
			t.Fatal(err)
		}
		if chosen, err := l.Choose(python); err != nil || chosen[0].File != "example-1.0-"+tt.b+"py3-none-any.whl" {
			t.Errorf("got %v, %v", chosen, err)
		}
	}
}

// TestDataLocks chooses from each lock in the program, as an image with glibc 2.28 or newer does.
func TestDataLocks(t *testing.T) {
	for _, version := range []string{"3.11.14", "3.12.3", "3.13.1", "3.14.0"} {
		for _, machine := range []string{"x86_64", "aarch64"} {
			ip := Interpreter{Version: version, Machine: machine, Glibc: "2.28"}
			l, err := DataLock(ip)
			if err != nil {
				t.Fatal(err)
			}
			chosen, err := l.Choose(ip)
			if err != nil {
				t.Fatal(err)
			}
			var size int64
			names := " "
			for _, c := range chosen {
				if c.Size == 0 {
					t.Errorf("%s has no size", c.File)
				}
				size += c.Size
				names += c.Name + " "
			}
			if size > 90e6 {
				t.Errorf("the wheels for %s have %d bytes; 90 MB are promised", ip, size)
			}
			wanted, err := os.ReadFile("data/data.in")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range strings.Fields(string(wanted)) {
				if !strings.Contains(names, " "+name+" ") {
					t.Errorf("the lock for %s lacks %s", ip, name)
				}
			}
		}
	}
	if _, err := DataLock(Interpreter{Version: "3.10.1", Machine: "x86_64", Glibc: "2.36"}); err == nil {
		t.Error("there is a lock for 3.10")
	}
}

func TestMarkers(t *testing.T) {
	tests := []struct {
		marker string
		want   bool
	}{
		{"", true},
		{"python_version >= '3.9'", true},
		{"python_version < '3.9'", false}, // as versions
		{"python_full_version < '3.13.2' and python_full_version>='3.13'", true},
		{"sys_platform == 'win32' or sys_platform == 'linux' and platform_machine == 'x86_64'", true},
		{"(sys_platform == 'win32' or sys_platform == 'linux') and platform_machine == 'arm64'", false},
		{"'linux' in sys_platform", true},
		{"platform_machine not in 'aarch64 arm64'", true},
		{"python_version in '3.12 3.13'", true},
		{"implementation_name != 'pypy' and os_name > 'nt'", true},
		{"platform_python_implementation == 'PyPy'", false},
		{"extra == 'test'", false},
		{"'3.12' <= python_version", true},
		{"python_version == '3.*'", true},
	}
	for _, tt := range tests {
		if got, err := holds(tt.marker, python); err != nil || got != tt.want {
			t.Errorf("%s: got %v, %v, want %v", tt.marker, got, err, tt.want)
		}
	}
	for _, bad := range []string{"python_version", "python_version = '3'", "(os_name == 'posix'",
		"os_name == 'posix')", "os_name not 'x'",
		"os_name == posix", "platform_release > '1'", "os_name == 'a' 'b'", "and", "'a' ~= 'b'",
		strings.Repeat("os_name == 'posix' or ", 200) + "os_name == 'posix'"} {
		if _, err := holds(bad, python); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// FuzzLock reads any text as a lock: what is accepted is what the rest relies upon.
func FuzzLock(f *testing.F) {
	text, err := locks.ReadFile("data/pylock.data-cp313-x86_64.toml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(oneWheel(`marker = "(python_version > '3' or extra == 'x') and os_name not in 'y'"`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		chosen, err := l.Choose(python)
		if err != nil {
			return
		}
		for _, c := range chosen {
			if !hashPattern.MatchString(c.SHA256) || strings.Contains(c.File, "/") || c.Name != Normalize(c.Name) {
				t.Errorf("chosen was %+v", c)
			}
		}
	})
}
