package seccomp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoad(t *testing.T) {
	if p, err := Load(Engine); p != nil || err != nil {
		t.Errorf("engine: got %v, %v, want none", p, err)
	}
	for _, choice := range []string{Strict, ""} {
		p, err := Load(choice)
		if err != nil || p.Name != Strict || check(p.JSON) != nil {
			t.Fatalf("%q: got %v, %v", choice, p, err)
		}
		p.JSON[0] = 'x' // the caller's own
	}
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "own.json")
	text := `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["ptrace"],"action":"SCMP_ACT_ERRNO",` +
		`"errnoRet":1,"args":[],"new":"field"}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	p, err := Load("own.json")
	if err != nil || string(p.JSON) != text || !filepath.IsAbs(p.Name) {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	tests := []struct{ name, text, want string }{
		{"empty", "", "no JSON object"},
		{"a list", "[]", "no JSON object"},
		{"cut", `{"defaultAction":"SCMP_ACT_ERRNO"`, "no such JSON"},
		{"two", `{"defaultAction":"SCMP_ACT_ERRNO"}{}`, "no such JSON"},
		{"other JSON", `{"a":1}`, `no "defaultAction"`},
		{"wrong type", `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":{}}`, "no such JSON"},
		{"unknown default", `{"defaultAction":"DENY"}`, `"DENY"`},
		{"unknown action", `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"ALLOW"}]}`,
			"rule 1"},
		{"no names", `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":[],"action":"SCMP_ACT_ALLOW"}]}`,
			"names no system call"},
		{"stops nothing", `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],` +
			`"action":"SCMP_ACT_LOG"}]}`, "stops no"},
		{"huge", strings.Repeat(" ", maxFile) + "{}", "larger than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(dir, "p.json")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			checkRefused(t, path, tt.want)
		})
	}
	checkRefused(t, filepath.Join(dir, "none.json"), "no such file")
	checkRefused(t, dir, "no ordinary file")
	checkRefused(t, "/dev/zero", "no ordinary file")
}

func checkRefused(t *testing.T, path, want string) {
	t.Helper()
	p, err := Load(path)
	if p != nil || err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(),
		path) || !strings.Contains(err.Error(), "MCP_BRIDGE_SECCOMP") {
		t.Errorf("got %v, %v, want an error with %q, the path and the setting", p, err, want)
	}
}

// full is the format as far as strict uses it.
type full struct {
	DefaultAction   string `json:"defaultAction"`
	DefaultErrnoRet int    `json:"defaultErrnoRet"`
	ArchMap         []struct {
		Architecture     string   `json:"architecture"`
		SubArchitectures []string `json:"subArchitectures"`
	} `json:"archMap"`
	Syscalls []struct {
		Comment  string   `json:"comment"`
		Names    []string `json:"names"`
		Action   string   `json:"action"`
		ErrnoRet *int     `json:"errnoRet"`
		Args     []struct {
			Index    uint   `json:"index"`
			Value    uint64 `json:"value"`
			ValueTwo uint64 `json:"valueTwo"`
			Op       string `json:"op"`
		} `json:"args"`
	} `json:"syscalls"`
}

func parse(t *testing.T) full {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(strict)))
	d.DisallowUnknownFields()
	var f full
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	return f
}

// never are the calls that no rule may allow, whatever is added one day.
var never = strings.Fields(`
	acct add_key adjtimex bpf chroot clock_adjtime clock_settime clone3 create_module delete_module
	fanotify_init finit_module fsconfig fsmount fsopen fspick init_module io_uring_enter
	io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie
	mbind memfd_create memfd_secret migrate_pages mount mount_setattr move_mount move_pages
	name_to_handle_at open_by_handle_at open_tree perf_event_open personality pidfd_getfd pivot_root
	process_madvise process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot request_key
	seccomp set_mempolicy
	setdomainname sethostname setns settimeofday shmat shmget swapoff swapon syslog umount2 unshare
	userfaultfd vhangup vmsplice`)

// conditional are the calls that are allowed with some arguments only.
var conditional = strings.Fields("clone ioctl mknod mknodat prctl socket socketpair")

// TestStrict holds the shape of the profile: deny by default, no foreign architecture, no rule that
// undoes another.
func TestStrict(t *testing.T) {
	f := parse(t)
	if f.DefaultAction != "SCMP_ACT_ERRNO" || f.DefaultErrnoRet != 38 {
		t.Errorf("the default is %s %d, want an error, ENOSYS", f.DefaultAction, f.DefaultErrnoRet)
	}
	for _, a := range f.ArchMap {
		if len(a.SubArchitectures) > 0 {
			t.Errorf("%s has calls of others: %v", a.Architecture, a.SubArchitectures)
		}
	}
	actions, bounded := map[string][]string{}, map[string]bool{}
	for _, r := range f.Syscalls {
		if r.Comment == "" || !slices.IsSorted(r.Names) || len(r.Names) == 0 {
			t.Errorf("rule %q: its names must be sorted, and it must say why it is there: %v", r.Comment, r.Names)
		}
		for _, n := range r.Names {
			actions[n] = append(actions[n], r.Action)
			if len(r.Args) > 0 {
				bounded[n] = true
			} else if len(actions[n]) > 1 {
				t.Errorf("%s has more than one rule, and one of them has no condition", n)
			}
		}
		if r.Action == "SCMP_ACT_ERRNO" && r.ErrnoRet == nil {
			t.Errorf("rule %q doesn't say which error", r.Comment)
		}
	}
	for _, n := range never {
		if slices.Contains(actions[n], "SCMP_ACT_ALLOW") {
			t.Errorf("%s is allowed", n)
		}
	}
	var got []string
	for n := range bounded {
		got = append(got, n)
	}
	slices.Sort(got)
	if diff := cmp.Diff(conditional, got); diff != "" {
		t.Errorf("calls with conditions (-want +got):\n%s", diff)
	}
}

// TestStrictMasks: the kernel takes these arguments for 32 bits, so a rule that compares 64 is one
// that can be gone around.
func TestStrictMasks(t *testing.T) {
	for _, r := range parse(t).Syscalls {
		for _, a := range r.Args {
			switch {
			case r.Names[0] == "clone":
				const namespaces = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 |
					0x20000000 | 0x40000000
				if a.Op != "SCMP_CMP_MASKED_EQ" || a.Value != namespaces || a.ValueTwo != 0 || a.Index != 0 {
					t.Errorf("clone is allowed with %+v", a)
				}
			case r.Action != "SCMP_ACT_ALLOW":
			case strings.HasPrefix(r.Names[0], "mknod"):
				if kind := a.ValueTwo; a.Value != 0o170000 || kind != 0 && kind != 0o010000 && kind != 0o100000 {
					t.Errorf("%s is allowed with %+v", r.Names[0], a)
				}
			case a.Op != "SCMP_CMP_MASKED_EQ" || a.Value != 0xFFFFFFFF:
				t.Errorf("%s is compared with all 64 bits: %+v", r.Names[0], a)
			}
			if tiocsti, tioclinux := uint64(0x5412),
				uint64(0x541C); r.Names[0] == "ioctl" && (a.ValueTwo == tiocsti || a.ValueTwo == tioclinux) {
				t.Error("ioctl may type into a terminal")
			}
		}
	}
}
