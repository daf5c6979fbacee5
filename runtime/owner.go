package runtime

import (
	"crypto/rand"
	"os"
	"strconv"
)

// Owner says which process a container belongs to, so that an orphan can be told from another bridge's container.
type Owner struct {
	Instance string // random, new for each process
	PID      int
	BootID   string // of where PID means something: one machine, one boot, one PID namespace; empty where the system doesn't tell
	Started  string // opaque mark of when PID was started, so that a reused PID isn't taken for it; may be empty
}

// Labels that every container carries, with the values of its Owner.
const (
	LabelInstance = "io.mcp-bridge.instance"
	LabelPID      = "io.mcp-bridge.owner-pid"
	LabelBootID   = "io.mcp-bridge.boot-id"
	LabelStarted  = "io.mcp-bridge.owner-started"
)

// Self is this process as an Owner, with a new Instance on each call.
func Self() Owner {
	pid := os.Getpid()
	return Owner{Instance: rand.Text(), PID: pid, BootID: bootID(), Started: startMark(pid)}
}

// Labels are o's for a container.
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
	return Owner{Instance: labels[LabelInstance], PID: pid, BootID: labels[LabelBootID], Started: labels[LabelStarted]}, true
}

// Orphaned says whether o, read from a container, is certainly dead as seen from by: a process of the same machine, boot and PID
// namespace that is no longer there. An owner elsewhere is never called dead, nor one of whom it isn't known where it is: engines
// are shared, between machines over ssh and with a development container that has the engine's socket.
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
