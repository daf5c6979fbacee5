package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWalk: whose hands a path goes through. The user is 1000; 1001 is another.
func TestWalk(t *testing.T) {
	const dir, socket, link = fs.ModeDir, fs.ModeSocket, fs.ModeSymlink
	files := map[string]entry{
		"/":                               {mode: dir | 0o755},
		"/run":                            {mode: dir | 0o755},
		"/var":                            {mode: dir | 0o755},
		"/var/run":                        {mode: link | 0o777, target: "../run"},
		"/run/docker.sock":                {mode: socket | 0o660, gid: 998},
		"/run/user":                       {mode: dir | 0o755},
		"/run/user/1000":                  {mode: dir | 0o711, uid: 1000, gid: 1000},
		"/run/user/1000/docker.sock":      {mode: socket | 0o660, uid: 1000, gid: 1000},
		"/run/user/1001":                  {mode: dir | 0o755, uid: 1001, gid: 1001},
		"/run/user/1001/docker.sock":      {mode: socket | 0o666, uid: 1001},
		"/run/user/1001/roots.sock":       {mode: socket | 0o666},
		"/run/group":                      {mode: dir | 0o775, gid: 1},
		"/run/group/docker.sock":          {mode: socket | 0o660},
		"/tmp":                            {mode: dir | fs.ModeSticky | 0o777},
		"/tmp/ours":                       {mode: dir | 0o700, uid: 1000, gid: 1000},
		"/tmp/ours/docker.sock":           {mode: socket | 0o600, uid: 1000, gid: 1000},
		"/tmp/ours.sock":                  {mode: socket | 0o600, uid: 1000, gid: 1000},
		"/tmp/theirs.sock":                {mode: socket | 0o666, uid: 1001},
		"/tmp/shared":                     {mode: dir | fs.ModeSticky | 0o777, uid: 1000},
		"/tmp/shared/podman":              {mode: dir | 0o755, uid: 1001},
		"/tmp/shared/podman/podman.sock":  {mode: socket | 0o666, uid: 1001},
		"/tmp/shared/podman/planted.sock": {mode: socket | 0o600, uid: 1000},
		"/tmp/open":                       {mode: dir | 0o777, uid: 1000},
		"/tmp/open/docker.sock":           {mode: socket | 0o600, uid: 1000},
		"/tmp/link":                       {mode: link | 0o777, uid: 1001, target: "/tmp/ours"},
		"/tmp/mine":                       {mode: link | 0o777, uid: 1000, target: "ours/../ours"},
		"/tmp/away":                       {mode: link | 0o777, uid: 1000, target: "/run/user/1001"},
		"/tmp/top":                        {mode: link | 0o777, uid: 1000, target: "/"},
		"/tmp/loop":                       {mode: link | 0o777, uid: 1000, target: "loop"},
		"/home":                           {mode: dir | 0o755},
		"/home/me":                        {mode: dir | 0o775, uid: 1000, gid: 1000},
		"/home/me/docker.sock":            {mode: socket | 0o600, uid: 1000, gid: 1000},
		"/home/me/staff":                  {mode: dir | 0o770, uid: 1000, gid: 50},
		"/home/me/staff/docker.sock":      {mode: socket | 0o600, uid: 1000, gid: 1000},
	}
	look := func(path string) (entry, error) {
		e, ok := files[path]
		if !ok {
			return e, &fs.PathError{Op: "lstat", Path: path, Err: fs.ErrNotExist}
		}
		return e, nil
	}
	for _, tt := range []struct{ path, want string }{ // want is the place that the error names; empty for none
		{"/run/docker.sock", ""},
		{"/var/run/docker.sock", ""},
		{"/run/user/1000/docker.sock", ""},
		{"/run/user/1000/../1000//./docker.sock", ""},
		{"/tmp/ours/docker.sock", ""},
		{"/tmp/ours.sock", ""},
		{"/tmp/mine/docker.sock", ""},
		{"/tmp/top/run/docker.sock", ""},
		{"/home/me/docker.sock", ""},
		{"/run/group/docker.sock", ""},
		{"/run/user/1001/docker.sock", "/run/user/1001 belongs to user 1001"},
		{"/run/user/1001/roots.sock", "/run/user/1001 belongs to user 1001"},
		{"/tmp/theirs.sock", "/tmp/theirs.sock belongs to user 1001"},
		{"/tmp/shared/podman/podman.sock", "/tmp/shared/podman belongs to user 1001"},
		{"/tmp/shared/podman/planted.sock", "/tmp/shared/podman belongs to user 1001"},
		{"/tmp/open/docker.sock", "/tmp/open can be written to by everybody"},
		{"/tmp/link/docker.sock", "/tmp/link belongs to user 1001"},
		{"/tmp/away/docker.sock", "/run/user/1001 belongs to user 1001"},
		{"/tmp/loop/docker.sock", "too many symbolic links"},
		{"/home/me/staff/docker.sock", "/home/me/staff can be written to by its group 50"},
		{"/run/none.sock", "not exist"},
		{"run/docker.sock", "no absolute path"},
	} {
		t.Run(tt.path, func(t *testing.T) {
			e, err := walk(tt.path, 1000, look)
			switch {
			case tt.want == "" && (err != nil || e.mode&fs.ModeSocket == 0):
				t.Errorf("got %v, %v; want the socket", e.mode, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	for _, tt := range []struct{ path, want string }{
		{"/run/user/1000", ""},
		{"/tmp/ours/", ""},
		{"/tmp/mine", ""},
		{"/tmp/top", "/tmp/top belongs to user 0"},
		{"/tmp/shared", "can be written to by others"},
		{"/home/me", "can be written to by others"},
		{"/run", "/run belongs to user 0"},
		{"/run/user/1001", "belongs to user 1001"},
		{"/tmp/ours.sock", "no directory"},
		{"/run/user/7", "not exist"},
	} {
		t.Run("own "+tt.path, func(t *testing.T) {
			err := ownDir(tt.path, 1000, look)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestTrustedSocket: on files that there are.
func TestTrustedSocket(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for mode, bad := range map[fs.FileMode]bool{0o700: false, 0o755: false, 0o777: true} {
		t.Run(fmt.Sprintf("%#o", mode), func(t *testing.T) {
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			if err := TrustedSocket(socket); (err != nil) != bad || bad && !strings.Contains(err.Error(), dir) {
				t.Errorf("the socket: %v", err)
			}
			if err := OwnRuntimeDir(dir); (err != nil) != bad {
				t.Errorf("the directory: %v", err)
			}
		})
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := OwnRuntimeDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if os.Geteuid() != 0 {
		return // to give a file away takes root
	}
	if err := os.Chown(socket, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := TrustedSocket(socket); err == nil || !strings.Contains(err.Error(), "user 12345") {
		t.Errorf("another's: %v", err)
	}
}
