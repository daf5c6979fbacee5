package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Info is what a caller is told of a sandbox.
type Info struct {
	ID          string
	Settings    Settings
	Environment *sandbox.Environment // nil for none
	Limits      runtime.Limits
	Paused      bool
	Busy        bool  // a call is under way
	Asleep      bool  // it has ended and was saved; Enter wakes it
	Size        int64 // of the file of one that was saved
	Calls       int   // runs of code
	Created     time.Time
	Used        time.Time // last

	// DeletedAt is when a paused one ends that has an AutoDelete; otherwise it is zero.
	DeletedAt time.Time
}

// Status is what callers read of a sandbox's state.
func (i Info) Status() string {
	switch {
	case i.Asleep:
		return "hibernated"
	case i.Paused:
		return "paused"
	}
	return "active"
}

// info describes a sandbox. It is called with mu held.
func (b *record) info() Info {
	i := Info{ID: b.id, Settings: b.settings, Environment: b.env, Limits: b.registry.cfg.Limits,
		Paused: b.paused, Busy: b.busy, Calls: b.calls, Created: b.created, Used: b.used}
	i.Settings.Metadata = maps.Clone(b.settings.Metadata)
	if e := b.env; e != nil {
		if e.Limits.Memory > 0 {
			i.Limits.Memory = e.Limits.Memory
		}
		if e.Limits.CPUs > 0 {
			i.Limits.CPUs = e.Limits.CPUs
		}
	}
	if b.paused && b.settings.AutoDelete > 0 {
		i.DeletedAt = b.since.Add(b.settings.AutoDelete)
	}
	return i
}

// All describes the sandboxes of all owners, the last used first, then those that are saved.
func (r *Registry) All() []Info {
	r.mu.Lock()
	var all []Info
	for _, b := range r.live.byID {
		if b.guest != nil {
			all = append(all, b.info())
		}
	}
	live := maps.Clone(r.live.byID)
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b Info) int { return b.Used.Compare(a.Used) })
	if r.Hibernates() {
		all = r.asleep.list(all, live, r.asleep.Store.All())
	}
	return all
}

// Owner returns whose a sandbox is, also of one that is saved.
func (r *Registry) Owner(id string) (owner string, ok bool) {
	if r.settled(context.Background(), id) == nil { // saveTimeout bounds it
		b := r.live.byID[id]
		r.mu.Unlock()
		if b != nil {
			return b.owner, true
		}
	}
	if r.Hibernates() {
		for _, v := range r.asleep.Store.All() {
			if v.ID == id {
				return v.Owner, true
			}
		}
	}
	return "", false
}

// List describes the sandboxes of an owner, the last used first, then those that are saved.
func (r *Registry) List(owner string) []Info {
	r.mu.Lock()
	all := r.live.list(owner)
	live := maps.Clone(r.live.byID)
	r.mu.Unlock()
	if r.Hibernates() {
		all = r.asleep.list(all, live, r.asleep.Store.List(owner))
	}
	return all
}

// Info describes a sandbox. The error is a *GoneError, or an *hibernation.Error.
func (r *Registry) Info(owner, id string) (Info, error) {
	return r.look(owner, id, func(*record) error { return nil })
}

// Update changes the settings of a sandbox by change. The error is a *GoneError.
func (r *Registry) Update(owner, id string, change func(*Settings)) (Info, error) {
	return r.change(owner, id, func(b *record) error {
		change(&b.settings)
		b.schedule()
		return nil
	})
}

// Pause has a sandbox wait until its next call, or Resume, without ending while it is idle. The
// error is a *GoneError, or an *InUseError if a call is under way.
func (r *Registry) Pause(owner, id string) (Info, error) {
	return r.change(owner, id, func(b *record) error {
		if b.busy {
			return &InUseError{ID: id}
		}
		b.pause()
		b.schedule()
		return nil
	})
}

// Resume ends a pause, if there is one. The error is a *GoneError.
func (r *Registry) Resume(owner, id string) (Info, error) {
	return r.change(owner, id, func(b *record) error {
		b.resume()
		b.schedule()
		return nil
	})
}

// change changes a sandbox by do, and describes it then. The error is a *GoneError, an
// *AsleepError for one that is saved, or do's.
func (r *Registry) change(owner, id string, do func(*record) error) (Info, error) {
	i, err := r.look(owner, id, do)
	if i.Asleep || errors.As(err, new(*hibernation.Error)) {
		return Info{}, &AsleepError{ID: id}
	}
	return i, err
}

// look changes a sandbox that lives by do, and describes it, or one that is saved. The error is a
// *GoneError, an *hibernation.Error or do's.
func (r *Registry) look(owner, id string, do func(*record) error) (Info, error) {
	i, err := func() (Info, error) {
		_ = r.settled(context.Background(), id) // saveTimeout bounds it
		defer r.mu.Unlock()
		b, err := r.find(owner, id)
		if err == nil {
			err = do(b)
		}
		if err != nil {
			return Info{}, err
		}
		return b.info(), nil
	}()
	if !r.Hibernates() || !errors.As(err, new(*GoneError)) {
		return i, err
	}
	v, none := r.asleep.Store.Look(owner, id)
	if errors.Is(none, hibernation.ErrNone) {
		return Info{}, err
	}
	return r.asleep.info(v), none
}

// End ends a sandbox, with the call under way in it and those that wait, and removes what was saved
// of it. It reports whether there was one.
func (r *Registry) End(owner, id, reason string) bool {
	_ = r.settled(context.Background(), id) // saveTimeout bounds it
	defer r.mu.Unlock()
	if b, err := r.find(owner, id); err == nil {
		b.end(reason, removed)
		return true
	}
	if !r.Hibernates() || !r.asleep.Store.Remove(owner, id) {
		return false
	}
	r.bury(id, owner, reason)
	return true
}

// A GoneError says that a caller has no sandbox of an id.
type GoneError struct {
	ID     string
	Reason string // why it has ended; empty when there was none of the caller's, as far as is known
	Live   []Info // the caller's sandboxes, the last used first

	saves bool          // sandboxes outlive the bridge
	runs  time.Duration // for which the bridge has run
}

// maxEcho bounds how much of an id that a caller made up an error repeats.
const maxEcho = 80

func (e *GoneError) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("sandbox %q has ended: %s", e.ID, e.Reason)
	}
	if e.saves {
		return fmt.Sprintf("you have no sandbox %.*q, neither a live nor a saved one", maxEcho, e.ID)
	}
	return fmt.Sprintf("you have no sandbox %.*q: sandboxes end with the bridge, which was started %s, and "+
		"over stdio with their connection", maxEcho, e.ID, ago(e.runs))
}

// Others names the caller's sandboxes, and how to tell them apart.
func (e *GoneError) Others() string {
	if len(e.Live) == 0 {
		return "you have no live sandboxes"
	}
	var all []string
	for _, i := range e.Live {
		name := ""
		if i.Settings.Name != "" {
			name = fmt.Sprintf(" %q", i.Settings.Name)
		}
		all = append(all, fmt.Sprintf("%s%s (call %d, %s)", i.ID, name, i.Calls, ago(time.Since(i.Used))))
	}
	return "your live sandboxes: " + strings.Join(all, ", ")
}

// A BusyError says that too many calls wait for a sandbox.
type BusyError struct {
	ID      string
	Waiting int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("sandbox %s is busy: %d calls wait for it, which is the limit", e.ID, e.Waiting)
}

// An InUseError says that a sandbox can't be paused while a call is under way in it.
type InUseError struct{ ID string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("sandbox %s is in a conflicting state: a call is under way in it", e.ID)
}

// An AsleepError says that a sandbox has to be woken before it can be changed.
type AsleepError struct{ ID string }

func (e *AsleepError) Error() string {
	return fmt.Sprintf("sandbox %s is in a conflicting state: it is hibernated", e.ID)
}

// A FullError says that no sandbox can be begun.
type FullError struct {
	Own, Most int // how many the caller has, and how many all callers may have
	closed    bool
}

func (e *FullError) Error() string {
	switch {
	case e.closed:
		return "no sandbox can be begun: the bridge is ending"
	case e.Own >= PerOwner:
		return fmt.Sprintf("you have %s, which is the limit, and calls are under way in all of them",
			plural(e.Own))
	case e.Own > 0:
		return fmt.Sprintf("there %s %s, which is the limit, and calls are under way in yours", are(e.Most),
			plural(e.Most))
	}
	return fmt.Sprintf("there %s %s of other callers, which is the limit", are(e.Most), plural(e.Most))
}

// are returns the verb for a number of things.
func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// plural returns a number of sandboxes.
func plural(n int) string {
	if n == 1 {
		return "1 sandbox"
	}
	return fmt.Sprintf("%d sandboxes", n)
}

// ago returns how long ago something was, in a few letters.
func ago(d time.Duration) string {
	if d < time.Second {
		return "just now"
	}
	return age(d) + " ago"
}

// age returns a duration in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}
