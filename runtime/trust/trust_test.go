package trust

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
	files := map[string]Entry{
		"/":                               {Mode: dir | 0o755},
		"/run":                            {Mode: dir | 0o755},
		"/var":                            {Mode: dir | 0o755},
		"/var/run":                        {Mode: link | 0o777, Target: "../run"},
		"/run/docker.sock":                {Mode: socket | 0o660, GID: 998},
		"/run/user":                       {Mode: dir | 0o755},
		"/run/user/1000":                  {Mode: dir | 0o711, UID: 1000, GID: 1000},
		"/run/user/1000/docker.sock":      {Mode: socket | 0o660, UID: 1000, GID: 1000},
		"/run/user/1001":                  {Mode: dir | 0o755, UID: 1001, GID: 1001},
		"/run/user/1001/docker.sock":      {Mode: socket | 0o666, UID: 1001},
		"/run/user/1001/roots.sock":       {Mode: socket | 0o666},
		"/run/group":                      {Mode: dir | 0o775, GID: 1},
		"/run/group/docker.sock":          {Mode: socket | 0o660},
		"/tmp":                            {Mode: dir | fs.ModeSticky | 0o777},
		"/tmp/ours":                       {Mode: dir | 0o700, UID: 1000, GID: 1000},
		"/tmp/ours/docker.sock":           {Mode: socket | 0o600, UID: 1000, GID: 1000},
		"/tmp/ours.sock":                  {Mode: socket | 0o600, UID: 1000, GID: 1000},
		"/tmp/theirs.sock":                {Mode: socket | 0o666, UID: 1001},
		"/tmp/shared":                     {Mode: dir | fs.ModeSticky | 0o777, UID: 1000},
		"/tmp/shared/podman":              {Mode: dir | 0o755, UID: 1001},
		"/tmp/shared/podman/podman.sock":  {Mode: socket | 0o666, UID: 1001},
		"/tmp/shared/podman/planted.sock": {Mode: socket | 0o600, UID: 1000},
		"/tmp/open":                       {Mode: dir | 0o777, UID: 1000},
		"/tmp/open/docker.sock":           {Mode: socket | 0o600, UID: 1000},
		"/tmp/link":                       {Mode: link | 0o777, UID: 1001, Target: "/tmp/ours"},
		"/tmp/mine":                       {Mode: link | 0o777, UID: 1000, Target: "ours/../ours"},
		"/tmp/away":                       {Mode: link | 0o777, UID: 1000, Target: "/run/user/1001"},
		"/tmp/top":                        {Mode: link | 0o777, UID: 1000, Target: "/"},
		"/tmp/loop":                       {Mode: link | 0o777, UID: 1000, Target: "loop"},
		"/home":                           {Mode: dir | 0o755},
		"/home/me":                        {Mode: dir | 0o775, UID: 1000, GID: 1000},
		"/home/me/docker.sock":            {Mode: socket | 0o600, UID: 1000, GID: 1000},
		"/home/me/staff":                  {Mode: dir | 0o770, UID: 1000, GID: 50},
		"/home/me/staff/docker.sock":      {Mode: socket | 0o600, UID: 1000, GID: 1000},
	}
	look := func(path string) (Entry, error) {
		e, ok := files[path]
		if !ok {
			return e, &fs.PathError{Op: "lstat", Path: path, Err: fs.ErrNotExist}
		}
		return e, nil
	}
	owners := Owners{Self: 1000, Look: look, Private: func(gid int) bool { return gid == 1000 }}
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
			e, err := owners.walk(tt.path)
			switch {
			case tt.want == "" && (err != nil || e.Mode&fs.ModeSocket == 0):
				t.Errorf("got %v, %v; want the socket", e.Mode, err)
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
			err := owners.OwnDirectory(tt.path)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestFile: a file is what it says, so that who may write to it matters too.
func TestFile(t *testing.T) {
	files := map[string]Entry{
		"/":      {Mode: fs.ModeDir | 0o755},
		"/h":     {Mode: fs.ModeDir | 0o755, UID: 1000, GID: 1000},
		"/h/a b": {Mode: fs.ModeDir | 0o777, UID: 1000, GID: 1000}, "/h/a b/f": {Mode: 0o600, UID: 1000},
		"/open": {Mode: fs.ModeDir | 0o777}, "/open/f": {Mode: 0o600, UID: 1000},
		"/h/mine": {Mode: 0o600, UID: 1000, GID: 1000}, "/h/umask2": {Mode: 0o664, UID: 1000, GID: 1000},
		"/h/own":   {Mode: 0o664, UID: 1000, GID: 1007},
		"/h/staff": {Mode: 0o664, UID: 1000, GID: 50}, "/h/all": {Mode: 0o646, UID: 1000, GID: 1000},
		"/h/theirs": {Mode: 0o600, UID: 1001},
		"/etc":      {Mode: fs.ModeDir | 0o775, GID: 80}, "/etc/f": {Mode: 0o644}, "/etc/wheel": {Mode: 0o664},
		"/etc/devs": {Mode: 0o664, GID: 50}, "/etc/all": {Mode: 0o666},
		"/h/link": {Mode: fs.ModeSymlink | 0o777, UID: 1000, Target: "dots/f"},
		"/h/dots": {Mode: fs.ModeDir | 0o775, UID: 1000, GID: 1000}, "/h/dots/f": {Mode: 0o664, UID: 1000,
			GID: 1000},
		"/h/lead": {Mode: fs.ModeSymlink | 0o777, UID: 1000, Target: "/h2/f"},
		"/h/acl":  {Mode: 0o660, UID: 1000, GID: 1000, Writers: []Writer{{ID: 1001}}},
		"/h/aclown": {Mode: 0o660, UID: 1000, GID: 1000,
			Writers: []Writer{{}, {ID: 1000}, {Group: true, ID: 1007}}},
		"/h/aclg":   {Mode: 0o660, UID: 1000, GID: 1000, Writers: []Writer{{Group: true, ID: 50}}},
		"/h/acldir": {Mode: fs.ModeDir | 0o770, UID: 1000, GID: 1000, Writers: []Writer{{ID: 1001}}},
		"/h/acldir/f": {
			Mode: 0o600, UID: 1000},
		"/h2": {Mode: fs.ModeDir | 0o755, UID: 1001}, "/h2/f": {Mode: 0o644, UID: 1001},
	}
	owners := Owners{Self: 1000, Private: func(gid int) bool { return gid == 1000 || gid == 1007 },
		Look: func(path string) (Entry, error) {
			if e, ok := files[path]; ok {
				return e, nil
			}
			return Entry{}, fs.ErrNotExist
		}}
	for _, tt := range []struct{ path, why, fix string }{
		{"/h/mine", "", ""}, {"/h/umask2", "", ""}, {"/h/own", "", ""}, {"/etc/f", "", ""}, {"/etc/wheel", "",
			""}, {"/h/link", "", ""},
		{"/h/aclown", "", ""},
		{"/h/acl", "/h/acl can be written to by user 1001, as its ACL says", "setfacl -x user:1001 /h/acl"},
		{"/h/aclg", "/h/aclg can be written to by group 50, as its ACL says", "setfacl -x group:50 /h/aclg"},
		{"/h/acldir/f", "/h/acldir can be written to by user 1001, as its ACL says: another",
			"setfacl -x user:1001"},
		{"/h/staff", "/h/staff can be written to by its group 50", "chmod g-w /h/staff"},
		{"/h/all", "/h/all can be written to by everybody", "chmod o-w /h/all"},
		{"/h/theirs", "/h/theirs belongs to user 1001", "copy it"},
		{"/etc/devs", "/etc/devs can be written to by its group 50", "sudo chmod g-w /etc/devs"},
		{"/etc/all", "/etc/all can be written to by everybody", "sudo chmod o-w /etc/all"},
		{"/h/lead", "/h2 belongs to user 1001", "copy it"},
		{"/open/f", "/open can be written to by everybody", "sudo chmod +t /open"},
		{"/h/a b/f", "/h/a b can be written to by everybody", "chmod o-w '/h/a b'"},
	} {
		err := owners.File(tt.path)
		var bad *Error
		if (err != nil) != (tt.why != "") || err != nil && (!errors.As(err,
			&bad) || !strings.HasPrefix(err.Error(), tt.why) || !strings.Contains(bad.Hint(), tt.fix)) {
			t.Errorf("%s: got %v, want %q", tt.path, err, tt.why)
		}
		if err := (Owners{}).File(tt.path); err != nil {
			t.Errorf("%s, where owners say nothing: %v", tt.path, err)
		}
	}
	for path, want := range map[string]bool{"/h/mine": false, "/etc/f": false, "/h/theirs": true,
		"/none": false} {
		if got := owners.Foreign(path); got != want {
			t.Errorf("%s is another's: %v, want %v", path, got, want)
		}
	}
}

// TestSharedGroup: a group of the user's number counts as shared once another is in it.
func TestSharedGroup(t *testing.T) {
	files := map[string]Entry{"/": {Mode: fs.ModeDir | 0o755}, "/f": {Mode: 0o664, UID: 1000, GID: 1000}}
	owners := Owners{Self: 1000, Private: func(int) bool { return false },
		Look: func(path string) (Entry, error) { return files[path], nil }}
	if err := owners.File("/f"); err == nil || !strings.Contains(err.Error(), "its group 1000") {
		t.Errorf("got %v", err)
	}
}

// TestSystem: on files that there are.
func TestSystem(t *testing.T) {
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
			if err := System().Path(socket); (err != nil) != bad || bad && !strings.Contains(err.Error(), dir) {
				t.Errorf("the socket: %v", err)
			}
			if err := System().OwnDirectory(dir); (err != nil) != bad {
				t.Errorf("the directory: %v", err)
			}
		})
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := System().OwnDirectory(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if os.Geteuid() != 0 {
		return // to give a file away takes root
	}
	if err := os.Chown(socket, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := System().Path(socket); err == nil || !strings.Contains(err.Error(), "user 12345") {
		t.Errorf("another's: %v", err)
	}
}
