//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containers/podman/v5/libpod/define"
	"github.com/containers/podman/v5/pkg/specgen"
	"go.podman.io/storage/pkg/idtools"
	"go.podman.io/storage/types"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// users is the user namespace that each container gets. Its numbers are the same in all of them,
// but the kernel counts processes by namespace and user (since 5.14), so that RLIMIT_NPROC bounds
// each container by itself.
//
// Rootless it is the identity over podman's own namespace: nothing has to be given to another
// owner, so the image's files are used as they are. `nomap` and `auto` count as well, and copy the
// image once for each set of numbers.
//
// As root its numbers are those of no user of the machine: code that gets out of the container is
// no user there. The files are shown under these numbers by the kernel (idmapped mounts), which
// also copies nothing.
type users struct {
	base int    // outside, of number 0
	size int    // 0 for no namespace of its own
	why  string // it has none
}

// rootfulBase begins a range that neither useradd's subordinate ids nor systemd's containers reach,
// of which the latter's documentation says that it is unused.
const (
	rootfulBase = 0x70000000
	rootfulSize = 1 << 16
)

// usersFor decides by what the engine says of itself. Where a run finds that it can't be had
// nevertheless, see concede.
func usersFor(f runtime.Facts, info *define.Info) users {
	since := func(major, minor int) bool { return runtime.KernelSince(info.Host.Kernel, major, minor) }
	switch {
	case filepath.Base(f.OCIRuntime) == "krun":
		return users{why: "krun's containers are virtual machines"}
	case info.Store != nil && info.Store.GraphDriverName == "vfs":
		return users{why: "with the storage driver vfs each would be a copy of the image; overlay has it: write" +
			" driver = \"overlay\" under [storage] of storage.conf; podman keeps vfs until podman system reset, " +
			"which removes all of its containers and images"}
	case !f.Rootless && !since(5, 19):
		return users{why: "the engine's kernel, " + info.Host.Kernel +
			", has no idmapped mounts of overlay; 5.19 has"}
	case !f.Rootless:
		return users{base: rootfulBase, size: rootfulSize}
	case f.Enforces.PIDs:
		return users{why: "processes are counted by control group"}
	case !since(5, 14):
		return users{why: "the engine's kernel, " + info.Host.Kernel +
			", counts processes by user over all of them; 5.14 does by container"}
	}
	size := min(span(info.Host.IDMappings.UIDMap), span(info.Host.IDMappings.GIDMap))
	if size < rootfulSize {
		return users{why: fmt.Sprintf("podman's own has only %d users; more come from /etc/subuid and"+
			" /etc/subgid", size)}
	}
	return users{size: size}
}

// span counts the numbers from 0 on that a namespace has without a gap. Podman lists them in order.
func span(ranges []idtools.IDMap) int {
	next := 0
	for _, r := range ranges {
		if r.ContainerID != next {
			break
		}
		next += r.Size
	}
	return next
}

// apply writes it into a container's specification. Without one, podman's settings have the last
// word as root, where they can only be as safe or safer; rootless they could put the user's own
// number into the container (keep-id).
func (u users) apply(g *specgen.SpecGenerator, rootless bool) {
	if u.size > 0 {
		m := idtools.IDMap{HostID: u.base, Size: u.size}
		g.UserNS.NSMode = specgen.Private
		g.IDMappings = &types.IDMappingOptions{UIDMap: []idtools.IDMap{m}, GIDMap: []idtools.IDMap{m}}
		return
	}
	if rootless {
		g.UserNS.NSMode = specgen.Host // podman's own, which isn't the machine's
	}
}

// hold reports whether the code's user and group are in it.
func (u users) hold(user string) bool {
	uid, gid, _ := strings.Cut(user, ":")
	for _, s := range []string{uid, gid} {
		if n, err := strconv.Atoi(s); u.size > 0 && (err != nil || n >= u.size) {
			return false
		}
	}
	return true
}

const refusedUsers = "the engine has refused it"

// without returns the same connection for containers that share a user namespace.
func (c *connection) without() *connection {
	shared := *c
	shared.users = users{why: refusedUsers}
	shared.facts.OwnUsers = false
	shared.facts.Lacks = append(append([]string{}, c.facts.Lacks...),
		"a user namespace for each container: "+refusedUsers)
	return &shared
}

// concede remembers that the engine makes containers only if they share a user namespace.
func (d *Driver) concede(c, plain *connection, err error) {
	d.shared.Store(true)
	d.Swap(c, plain)
	d.log.Warn("podman makes no user namespace for each container, so that processes are counted over all of"+
		" them",
		"err", err)
}
