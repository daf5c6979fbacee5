package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func init() { children["small"] = small }

// small mounts a file system on a directory, of less room than has to be there before anything
// begins.
func small(args []string) error {
	dir := args[0]
	// The namespace is a copy of one that may share its mounts with others (mount_namespaces(7)).
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		return err
	}
	l, err := Open(Config{Path: filepath.Join(dir, "audit.jsonl")})
	if err == nil {
		err = l.Ready(context.Background())
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("on a file system without room it is ready: %v", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=1m"); err != nil {
		return err
	}
	if err := l.Ready(context.Background()); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	return nil
}

// TestRoomIsReserved: whether there is room for a record is known before what is recorded begins,
// not after it has ended.
func TestRoomIsReserved(t *testing.T) {
	cmd := exec.Command(os.Args[0], t.TempDir())
	cmd.Env = append(os.Environ(), asChild+"=small")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
