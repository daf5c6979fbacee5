package runtimetest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// CheckDenied checks that a call of Probe was refused before the kernel looked at its arguments.
func CheckDenied(t *testing.T, r Report, name string) {
	t.Helper()
	if wrong := denied(r, name); wrong != "" {
		t.Error(wrong)
	}
}

// denied returns what is wrong with the answer that a call got, if anything.
func denied(r Report, name string) string {
	got, ok := r.Calls[name]
	switch {
	case !ok:
		return name + " was not tried"
	case got == nil:
		return name + " went through"
	case *got == "Operation not permitted", *got == "Function not implemented", *got == "ended by signal 31":
		return ""
	case slices.Contains(r.Classes["sockets of other families"], name) &&
		strings.HasPrefix(*got, "Address family not supported"):
		return "" // by the filter, or because the kernel has no module: there is no socket
	}
	return name + " was not refused but failed: " + *got
}

// everywhere are calls that each engine's default profile denies. The guest's own filter denies the
// others, which podman's lets through, say, and all but those of StrictClasses.
var everywhere = []string{"bpf", "perf_event_open", "init_module", "open_by_handle_at", "mknod_disk"}

// StrictClasses are denied by our profile alone.
var StrictClasses = []string{"typing into a terminal", "unneeded process settings"}

// checkCalls is a test of what all engines deny, and under our own profile one for each class
// besides.
func (in *inspection) checkCalls(t *testing.T, strict bool) {
	classes := []property{{"those that every engine denies", func(in *inspection) { in.denied(everywhere) }}}
	for _, class := range slices.Sorted(maps.Keys(in.Classes)) {
		if strict {
			classes = append(classes, property{class, func(in *inspection) { in.denied(in.Classes[class]) }})
		}
	}
	if !strict {
		t.Log("PROPERTY: the engine takes no profile of ours here: its default and the guest's own filter hold")
	}
	if why, all := in.differs["calls"]; all {
		for _, c := range classes {
			in.differs[c.name] = why
		}
	}
	in.check(t, classes)
	if strict && len(classes) < 15 {
		t.Errorf("only %d classes of calls were tried", len(classes))
	}
}

func (in *inspection) denied(names []string) {
	for _, name := range names {
		if wrong := denied(in.Report, name); wrong != "" {
			in.problem("%s", wrong)
		}
	}
}
