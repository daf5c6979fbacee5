package runtime

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
)

// Owner says which process a container belongs to, so that an orphan can be told from another
// bridge's container.
type Owner struct {
	Instance string // random, new for each process
	PID      int
	// of where PID means something: one machine, one boot, one PID namespace; empty where the system
	// doesn't tell
	BootID  string
	Started string // opaque mark of when PID was started, so that a reused PID isn't taken for it; may be empty
}

// Labels that every container carries, with the values of its Owner.
const (
	LabelInstance = "io.mcp-bridge.instance"
	LabelPID      = "io.mcp-bridge.owner-pid"
	LabelBootID   = "io.mcp-bridge.boot-id"
	LabelStarted  = "io.mcp-bridge.owner-started"
)

// Self returns this process as an Owner, with a new Instance on each call.
func Self() Owner {
	pid := os.Getpid()
	return Owner{Instance: rand.Text(), PID: pid, BootID: bootID(), Started: startMark(pid)}
}

// Labels returns o's labels for a container.
func (o Owner) Labels() map[string]string {
	return map[string]string{
		LabelInstance: o.Instance,
		LabelPID:      strconv.Itoa(o.PID),
		LabelBootID:   o.BootID,
		LabelStarted:  o.Started,
	}
}

// OwnerOf reads the labels of a container; ok says whether it is a bridge's at all.
func OwnerOf(labels map[string]string) (o Owner, ok bool) {
	pid, err := strconv.Atoi(labels[LabelPID])
	if err != nil || labels[LabelInstance] == "" {
		return Owner{}, false
	}
	return Owner{Instance: labels[LabelInstance], PID: pid, BootID: labels[LabelBootID],
		Started: labels[LabelStarted]}, true
}

// Orphaned reports whether o, read from a container, is certainly dead as seen from by: a process
// of the same machine, boot and PID namespace that is no longer there. An owner elsewhere is never
// called dead, nor one of whom it isn't known where it is: engines are shared, between machines
// over ssh and with a development container that has the engine's socket.
func (o Owner) Orphaned(by Owner) bool {
	if o.Instance == by.Instance || o.BootID == "" || o.BootID != by.BootID || o.PID <= 0 {
		return false
	}
	if gone(o.PID) {
		return true
	}
	now := startMark(o.PID)
	return o.Started != "" && now != "" && now != o.Started
}

// namePrefix is what all names of NewName begin with.
const namePrefix = "mcp-bridge-"

// NewName returns a new name for something of o's that may be found where there are no labels: a
// directory, or a container in the arguments of the processes beside it. OwnerNamed reads it. It is
// made of letters, digits and '-', about 50 of them.
func (o Owner) NewName() string {
	started := o.Started
	if started == "" {
		started = "0"
	}
	return namePrefix + strings.Join([]string{strconv.Itoa(o.PID), started, place(o.BootID), rand.Text()[:16]},
		"-")
}

// OwnerNamed returns the owner that a name of NewName tells of, as seen from by; ok says whether it
// is such a name. Where the owner is is known only if it is the same place as by's: any other owner
// is, to Orphaned, one that can't be told.
func OwnerNamed(name string, by Owner) (o Owner, ok bool) {
	rest, ok := strings.CutPrefix(name, namePrefix)
	parts := strings.Split(rest, "-")
	if !ok || len(parts) != 4 {
		return Owner{}, false
	}
	pid, err := strconv.Atoi(parts[0])
	if err != nil || pid < 0 {
		return Owner{}, false
	}
	o = Owner{Instance: parts[3], PID: pid, Started: strings.TrimPrefix(parts[1], "0")}
	if parts[2] == place(by.BootID) {
		o.BootID = by.BootID
	}
	return o, true
}

// place returns a short name of a BootID, which is too long for the path of a socket; "none" for
// none.
func place(bootID string) string {
	if bootID == "" {
		return "none"
	}
	sum := sha256.Sum256([]byte(bootID))
	return hex.EncodeToString(sum[:4])
}
