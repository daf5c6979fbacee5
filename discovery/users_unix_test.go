//go:build unix

package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The users of TestTwoUsers. There need be no accounts of theirs.
const (
	victim, attacker = 23456, 12345
	scanHome         = "MCP_BRIDGE_TEST_SCAN_HOME" // makes the test process scan, and print the catalog
)

// TestScanAsUser is the process that TestTwoUsers starts as another user.
func TestScanAsUser(t *testing.T) {
	if os.Getenv(scanHome) == "" {
		t.Skip("TestTwoUsers runs it")
	}
	t.Setenv("HOME", os.Getenv(scanHome))
	c := Scan(Root(), Current(nil))
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\ncatalog %s\n", data)
}

// projectFiles returns a file for each place where a host reads a project's servers, by its path
// below the project.
func projectFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{".claude/settings.json": `{"enableAllProjectMcpServers": true}`,
		".claude/settings.local.json": `{"enableAllProjectMcpServers": true}`}
	for _, r := range rows() {
		for _, pattern := range r.Paths.Linux {
			_, below, ok := strings.Cut(pattern, "}/")
			if !ok || !strings.HasPrefix(pattern, "{workspace}") && !strings.HasPrefix(pattern, "{up}") {
				continue
			}
			below, both := strings.CutSuffix(strings.Replace(below, "*", "s", 1), "(c)")
			files[below] = r.example(below, "evil", "evil", "")
			if both {
				files[below+"c"] = files[below]
			}
		}
	}
	if len(files) < 15 {
		t.Fatalf("the table has only %d files of projects", len(files))
	}
	return files
}

// TestTwoUsers: a user who works in a folder of theirs, which every host trusts, below a directory
// where others can write. Nothing that another user makes there says what is started. The files and
// the users are real ones.
func TestTwoUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making files of two users takes root")
	}
	program := filepath.Join(openDir(t), "scan")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err := errors.Join(err, os.WriteFile(program, data, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		make func(t *testing.T, shared, work string)
		used bool // the project's servers, by the hosts that keep their user's trust
	}{
		{"a file of the user's own in the folder", func(t *testing.T, _,
			work string) {
			plant(t, work, victim)
		}, true},
		{"files above", func(t *testing.T, shared, _ string) { plant(t, shared, attacker) }, false},
		{"a repository above", func(t *testing.T, shared, _ string) {
			plant(t, shared, attacker)
			write(t, shared+"/.git/HEAD", "ref: refs/heads/main\n", attacker)
		}, false},
		{"a worktree above", func(t *testing.T, shared, _ string) {
			plant(t, shared, attacker)
			write(t, shared+"/.git", "gitdir: /elsewhere\n", attacker)
		}, false},
		{"a link to the user's repository above", func(t *testing.T, shared, work string) {
			plant(t, shared, attacker)
			write(t, work+"/repo/.git/HEAD", "", victim)
			link(t, work+"/repo/.git", shared+"/.git", attacker)
		}, false},
		{"the folder is a repository", func(t *testing.T, shared, work string) {
			plant(t, shared, attacker)
			write(t, work+"/.git/HEAD", "", victim)
		}, false},
		{"root's repository above, with another's files", func(t *testing.T, shared, _ string) {
			plant(t, shared, attacker)
			write(t, shared+"/.git/HEAD", "", 0)
		}, false},
		{"root's repository above, with the user's files", func(t *testing.T, shared, _ string) {
			plant(t, shared, victim) // trust in the folder isn't trust in what is above it
			write(t, shared+"/.git/HEAD", "", 0)
		}, false},
		{"another's files in the folder", func(t *testing.T, _, work string) { plant(t, work, attacker) },
			false},
		{"another's directories in the folder", func(t *testing.T, _, work string) {
			plant(t, work, victim)
			for below := range projectFiles(t) {
				first, _, _ := strings.Cut(below, "/")
				chown(t, attacker, work+"/"+first)
			}
		}, false},
		{"another's links to files of the user's", func(t *testing.T, shared, work string) {
			plant(t, work+"/sub", victim)
			for below := range projectFiles(t) {
				link(t, work+"/sub/"+below, shared+"/"+below, attacker)
			}
		}, false},
		{"a folder where everybody writes", func(t *testing.T, _, work string) {
			plant(t, work, victim)
			if err := os.Chmod(work, 0o777); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a folder in another's directory", func(t *testing.T, shared, work string) {
			plant(t, work, victim)
			chown(t, attacker, shared)
		}, false},
		{"a folder below one where everybody replaces it", func(t *testing.T, shared, work string) {
			plant(t, work, victim)
			if err := os.Chmod(shared, 0o777); err != nil { // without the sticky bit
				t.Fatal(err)
			}
		}, false},
	} {
		for _, all := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, all approved by the user: %v", tt.name, all), func(t *testing.T) {
				base := openDir(t)
				shared, work, home := base+"/S", base+"/S/work", base+"/home"
				mkdir(t, shared, 0, 0o777|fs.ModeSticky)
				mkdir(t, work, victim, 0o755)
				trustEverywhere(t, home, work, all)
				tt.make(t, shared, work)
				c := scanAs(t, program, work, home)
				var evil, want []string // hosts
				for _, s := range c.Servers {
					for _, src := range append(s.Also, s.Source) {
						if s.Command == "evil" {
							evil = append(evil, src.Host)
						}
					}
				}
				slices.Sort(evil)
				if evil = slices.Compact(evil); tt.used {
					want = []string{claudeCode, codex, copilot, gemini}
				}
				mine := slices.ContainsFunc(c.Servers, func(s Server) bool {
					return s.Name == "mine" &&
						s.Command == "mine"
				})
				if !slices.Equal(evil, want) || !mine {
					t.Errorf("evil servers of %v, want %v; the user's own: %v\n%s", evil, want, mine, full(c))
				}
			})
		}
	}
}

// openDir makes a directory that other users can look into.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// trustEverywhere makes a home whose user has one server, and trusts the folder in every host that
// keeps that in a file.
func trustEverywhere(t *testing.T, home, work string, all bool) {
	t.Helper()
	write(t, home+"/.claude.json",
		`{"mcpServers": {"mine": {"command": "mine"}}, "projects": {"`+work+`": {"hasTrustDialogAccepted": `+
			`true, "enabledMcpjsonServers": ["evil", "mine"]}}}`, victim)
	write(t, home+"/.codex/config.toml", "[projects.\""+work+"\"]\ntrust_level = \"trusted\"\n", victim)
	write(t, home+"/.copilot/config.json", `{"trusted_folders": ["`+work+`"]}`, victim)
	write(t, home+"/.gemini/trustedFolders.json", `{"`+work+`": "TRUST_FOLDER"}`, victim)
	if all {
		write(t, home+"/.claude/settings.json", `{"enableAllProjectMcpServers": true}`, victim)
	}
}

// scanAs runs a scan as the victim.
func scanAs(t *testing.T, program, dir, home string) (c Catalog) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestScanAsUser$", "-test.v")
	cmd.Dir, cmd.Env = dir, []string{scanHome + "=" + home, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: victim, Gid: victim}}
	out, err := cmd.CombinedOutput()
	_, rest, ok := strings.Cut(string(out), "\ncatalog ")
	line, _, _ := strings.Cut(rest, "\n")
	if err != nil || !ok || json.Unmarshal([]byte(line), &c) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return c
}

// plant makes every file that a host reads in a project, of a server of the user's name and one of
// another.
func plant(t *testing.T, dir string, uid int) {
	t.Helper()
	for below, data := range projectFiles(t) {
		write(t, dir+"/"+below, data, uid)
	}
}

func write(t *testing.T, p, data string, uid int) {
	t.Helper()
	mkdir(t, filepath.Dir(p), uid, 0o755)
	if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
	chown(t, uid, p)
}

func link(t *testing.T, to, p string, uid int) {
	t.Helper()
	mkdir(t, filepath.Dir(p), uid, 0o755)
	if err := os.Symlink(to, p); err != nil {
		t.Fatal(err)
	}
	chown(t, uid, p)
}

// mkdir makes a directory and those above it that aren't there.
func mkdir(t *testing.T, dir string, uid int, mode fs.FileMode) {
	t.Helper()
	if _, err := os.Lstat(dir); err == nil {
		return
	}
	mkdir(t, filepath.Dir(dir), uid, 0o755)
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, mode)); err != nil {
		t.Fatal(err)
	}
	chown(t, uid, dir)
}

func chown(t *testing.T, uid int, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.Lchown(p, uid, uid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}
