// Package sandboxes keeps the sandboxes of all callers: guests that are lent to one call after the
// other. It knows whose each one is, in which order calls use it, when it ends and why it has
// ended. It knows nothing of what a call does.
//
// An id is no authority: a sandbox of another caller doesn't exist for this one. An id that was
// given out is never given out again.
package sandboxes

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Bounds that no setting changes.
const (
	PerOwner = 8 // sandboxes of one caller
	maxWait  = 8 // calls that wait for one sandbox
)

// A Guest is the interpreter and the files of a sandbox; *sandbox.Kept is one.
type Guest interface {
	Run(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error)
	Undo(ctx context.Context) (sandbox.KeptState, error)
	Exec(ctx context.Context, c sandbox.Command) (sandbox.Output, error)
	ReadFile(ctx context.Context, path string, limit int64) ([]byte, error)
	WriteFile(ctx context.Context, path string, data []byte) error
	ListFiles(ctx context.Context, path string) (files []sandbox.File, more bool, err error)
	ZipDir(ctx context.Context, path string, limit int64, w io.Writer) error
	Pack(ctx context.Context, path string, offset int64) (sandbox.Piece, error)
	Unpack(ctx context.Context, path string, archive []byte) error

	// Note returns what happened to the variables before the last operation on files, and forgets it.
	Note() string

	// Done is closed when the guest has ended by itself or by Close; Ended says why.
	Done() <-chan struct{}
	Ended() (reason string, ok bool)
	Close() error
}

// Config is what a Registry is made from. All fields but Suffix and Hibernation are required.
type Config struct {
	Keep func(ctx context.Context, r sandbox.KeepRequest) (Guest, error)

	Idle   time.Duration // without a call, after which a sandbox ends
	MaxAge time.Duration // after which it ends
	Most   int           // alive at a time, of all callers

	// LongestCall is how much older than MaxAge a sandbox may become, since no call is interrupted.
	LongestCall time.Duration

	Limits runtime.Limits // of a sandbox without an environment
	Suffix string         // of ids; may be empty

	Hibernation *Hibernation // nil: sandboxes end without being saved
}

// Registry holds the sandboxes. It is safe for concurrent use.
type Registry struct {
	cfg   Config
	began time.Time

	// mu guards the fields up to life, with all that is in them, records, and asleep.moving. Locks of
	// the Hibernation's Store are taken under it; those of a Guest are not.
	mu     sync.Mutex
	ids    ids
	live   population
	ended  tombstones
	shared map[string]string // by session: the id of the sandbox of its calls that name none
	life   context.Context   // ends when Close is about to be called

	asleep *hibernator    // nil: sandboxes end without being saved
	work   sync.WaitGroup // guests that are being made or ended, and those that watch them
	stop   func()         // nothing is saved any more
}

const bridgeEnded = "the bridge has ended"

// New returns an empty Registry.
func New(cfg Config) *Registry {
	saving, stop := context.WithCancel(context.Background())
	r := &Registry{cfg: cfg, began: time.Now(), ids: newIDs(cfg.Hibernation != nil),
		live: population{most: cfg.Most, byID: map[string]*record{}, leaving: map[string]int{},
			left: make(chan struct{})},
		ended: tombstones{of: map[string]tombstone{}}, shared: map[string]string{},
		life: context.Background(), stop: stop}
	if cfg.Hibernation != nil {
		r.asleep = &hibernator{Hibernation: *cfg.Hibernation, limits: cfg.Limits, saving: saving,
			moving: map[string]chan struct{}{}}
	}
	return r
}

// EndsWith has calls say that their sandboxes end, once ctx has ended: Close follows then. A nil
// Registry has none.
func (r *Registry) EndsWith(ctx context.Context) {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.life = ctx
	}
}

// Limits returns those of a sandbox without an environment.
func (r *Registry) Limits() runtime.Limits { return r.cfg.Limits }

// Close ends all sandboxes, and waits until they have ended. What is saved before that is saved
// within SaveAtEnd.
func (r *Registry) Close() {
	r.mu.Lock()
	r.live.closed = true
	for _, b := range r.live.byID {
		b.end(bridgeEnded, saved)
	}
	r.mu.Unlock()
	late := time.AfterFunc(SaveAtEnd, r.stop)
	defer late.Stop()
	r.work.Wait()
	r.stop()
}

// Settings are what a caller chooses of a sandbox.
type Settings struct {
	Name      string
	Metadata  map[string]string
	Variables map[string]string // of its environment
	Running   bool              // its processes run on between calls
	Principal string            // as in sandbox.Request, of all calls

	Timeout    time.Duration // of the time that it isn't paused, after which it ends; 0 for none
	AutoDelete time.Duration // of one pause, after which it ends; 0 for none
}

// Begin reserves a place for a sandbox and returns the first Call in it, which makes the guest. If
// the caller has as many as it may have, or all callers together have, the one of this caller that
// was not used for the longest time ends once there is the guest, a paused one only where all are
// paused that aren't in use. In the second case, where all of its own are in use, it is one of the
// caller that has most, if that has at least two more. The error is a *FullError, which the Call's
// methods may also return, where all others have come into use meanwhile.
func (r *Registry) Begin(owner string, s Settings) (*Call, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begin(owner, s)
}

// begin does what Begin does, with mu held.
func (r *Registry) begin(owner string, s Settings) (*Call, error) {
	replaces, err := r.live.place(owner)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	b := &record{registry: r, id: r.ids.next() + r.cfg.Suffix, owner: owner, settings: s, created: now,
		born: now, used: now, since: now, busy: true, replaces: replaces}
	r.live.byID[b.id] = b
	return &Call{record: b}, nil
}

// find returns a sandbox of an owner, or a *GoneError. It is called with mu held.
func (r *Registry) find(owner, id string) (*record, error) {
	if b := r.live.byID[id]; b != nil && b.owner == owner {
		return b, nil
	}
	gone := &GoneError{ID: id, Live: r.live.list(owner), saves: r.Hibernates(), runs: time.Since(r.began)}
	if t, ok := r.ended.of[id]; ok && t.owner == owner && time.Since(t.at) < tombstoneAge {
		gone.Reason = t.reason
	}
	return nil, gone
}

// bury notes why a sandbox has ended. It is called with mu held.
func (r *Registry) bury(id, owner, reason string) {
	for _, gone := range r.ended.add(id, owner, reason) { // no session is told of it any more
		maps.DeleteFunc(r.shared, func(_, id string) bool { return id == gone && r.live.byID[id] == nil })
	}
}

// Enter returns a Call in a sandbox once the calls that came before it are over. It calls queued,
// which may be nil, as soon as the call has its place among them. One that was saved is woken by
// the Call. The error is a *GoneError, a *BusyError, a *FullError, an *hibernation.Error or the
// cause of ctx's end.
func (r *Registry) Enter(ctx context.Context, owner, id string, queued func()) (*Call, error) {
	for {
		w, live, err := r.wake(ctx, owner, id)
		if err != nil {
			return nil, err
		}
		c, err := r.enter(ctx, queued, func() (*record, *Call, error) {
			b, err := r.find(owner, id)
			switch {
			case err == nil:
			case w != nil:
				b, err = w.record()
			case live:
				err = errMeanwhile
			}
			w.done()
			return b, nil, err
		})
		if !errors.Is(err, errMeanwhile) {
			return c, err
		}
	}
}

// errMeanwhile says that a sandbox has ended since it was looked at, and may have been saved. Who
// looks again finds it saved, gone, or woken by others.
var errMeanwhile = errors.New("the sandbox has ended meanwhile")

// Shared returns a Call in the sandbox of a session's calls that name none. It begins one of the
// owner's, with the settings, if there isn't one; Call.Before says what became of the one before
// it.
func (r *Registry) Shared(ctx context.Context, owner, session string, s Settings,
	queued func()) (*Call, error) {
	for {
		r.mu.Lock()
		id := r.shared[session]
		r.mu.Unlock()
		w, live, err := r.wake(ctx, owner, id)
		if err != nil {
			return nil, err
		}
		c, err := r.enter(ctx, queued, func() (*record, *Call, error) {
			defer w.done()
			id := r.shared[session]
			if b := r.live.byID[id]; b != nil {
				return b, nil, nil
			}
			if w != nil && w.id == id {
				b, err := w.record()
				return b, nil, err
			}
			if live {
				return nil, nil, errMeanwhile
			}
			c, err := r.begin(owner, s)
			if err != nil {
				return nil, nil, err
			}
			if t, ok := r.ended.of[id]; ok && t.owner == owner {
				c.Before = "sandbox " + id + " has ended: " + t.reason
			}
			r.shared[session] = c.ID()
			return nil, c, nil
		})
		switch {
		case err == nil:
			c.Shared = true
			return c, nil
		case !errors.Is(err, errMeanwhile):
			return nil, err
		}
	}
}

// enter gets in line for the sandbox that choose returns, unless it returns a Call. choose is
// called with mu held.
func (r *Registry) enter(ctx context.Context, queued func(),
	choose func() (*record, *Call, error)) (*Call, error) {
	if queued == nil {
		queued = func() {}
	}
	began := time.Now()
	r.mu.Lock()
	b, c, err := choose()
	var w *waiter
	if b != nil {
		w, err = b.queue()
	}
	r.mu.Unlock()
	if errors.Is(err, errMeanwhile) {
		return nil, err
	}
	queued()
	if c != nil || err != nil {
		return c, err
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		if !b.leaveQueue(w) { // its turn came just now
			b.next()
		}
		return nil, context.Cause(ctx)
	}
	if w.gone != nil {
		return nil, w.gone
	}
	return &Call{record: b, Waited: time.Since(began)}, nil
}

// EndAll ends the sandboxes of an owner that is gone, and saves them.
func (r *Registry) EndAll(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.live.of(owner) {
		b.end("its caller is gone", saved)
	}
}

// RemoveOf ends the sandboxes of owners that are gone for good, and removes those that were saved.
// It waits until what is being saved has been, or ctx has ended, and returns how many there were.
func (r *Registry) RemoveOf(ctx context.Context, gone func(owner string) bool, reason string) (n int) {
	r.mu.Lock()
	for _, b := range r.live.byID {
		if gone(b.owner) {
			b.end(reason, removed)
			n++
		}
	}
	if !r.Hibernates() {
		r.mu.Unlock()
		return n
	}
	moving := slices.Collect(maps.Keys(r.asleep.moving))
	r.mu.Unlock()
	for _, id := range moving {
		if r.settled(ctx, id) != nil {
			return n
		}
		r.mu.Unlock()
	}
	return n + r.asleep.Store.RemoveOf(gone)
}

// EndShared ends the sandbox that the calls of a session shared.
func (r *Registry) EndShared(session string) {
	r.mu.Lock()
	id := r.shared[session]
	owner := r.ended.of[id].owner // of one that is saved
	if b := r.live.byID[id]; b != nil {
		owner = b.owner
	}
	delete(r.shared, session)
	r.mu.Unlock()
	r.End(owner, id, "its session is over")
}
