package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Bounds of saving.
const (
	saveTimeout = 2 * time.Minute // of one
	maxSaved    = 160 << 20       // bytes of an archive
	saveTries   = 3               // where processes change files meanwhile

	// SaveAtEnd bounds the saving of all sandboxes when the bridge ends.
	SaveAtEnd = 5 * time.Second
)

// Hibernation is how sandboxes are saved before they end. All fields are required.
type Hibernation struct {
	Store *hibernation.Store
	Log   *slog.Logger

	// Environment returns the environment that a sandbox had, by its name. It may take long, and
	// calls slow before that.
	Environment func(ctx context.Context, name string, slow func(), p runtime.Progress) (*sandbox.Environment,
		error)
}

// fate is what becomes of the files of a sandbox that ends.
type fate int

const (
	removed fate = iota // with what was saved of it before
	saved
	lost // except for what was saved of it before
)

// A hibernator saves sandboxes that end, and describes those that are saved.
type hibernator struct {
	Hibernation
	limits runtime.Limits  // of those without an environment
	saving context.Context // ends when nothing is saved any more

	// By id of what is being saved or woken; closed when that is done. It is guarded by Registry.mu.
	moving map[string]chan struct{}
}

// move notes that a sandbox is being saved or woken, until done is called. Both are called with
// Registry.mu held.
func (h *hibernator) move(id string) (done func()) {
	ch := make(chan struct{})
	h.moving[id] = ch
	return func() {
		delete(h.moving, id)
		close(ch)
	}
}

// Hibernates reports whether sandboxes are saved before they end. Then they are better not bound to
// a connection.
func (r *Registry) Hibernates() bool { return r != nil && r.asleep != nil }

// settled waits until a sandbox is neither being saved nor woken, and returns with mu held. The
// error is the cause of ctx's end; mu is not held then.
func (r *Registry) settled(ctx context.Context, id string) error {
	for {
		r.mu.Lock()
		if !r.Hibernates() || r.asleep.moving[id] == nil {
			return nil
		}
		ch := r.asleep.moving[id]
		r.mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// waking is a sandbox that was saved, and is about to live again.
type waking struct {
	registry  *Registry
	id, owner string
	claim     *hibernation.Claim // nil once there is a record
	moved     func()
}

// wake returns a sandbox that was saved, nil if there isn't one or if it is live: the owner's,
// which may have changed by now. done must be called.
func (r *Registry) wake(ctx context.Context, owner, id string) (w *waking, live bool, err error) {
	if !r.Hibernates() {
		return nil, false, nil
	}
	if err := r.settled(ctx, id); err != nil {
		return nil, false, err
	}
	if b := r.live.byID[id]; b != nil || r.live.closed {
		r.mu.Unlock()
		return nil, b != nil && b.owner == owner, nil
	}
	w = &waking{registry: r, id: id, owner: owner, moved: r.asleep.move(id)}
	r.mu.Unlock()
	if w.claim, err = r.asleep.Store.Claim(owner, id); err == nil {
		return w, false, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w.moved()
	if errors.Is(err, hibernation.ErrNone) {
		err = nil
	}
	return nil, false, err
}

// record puts the sandbox among those that live. The error is a *FullError. It is called with mu
// held.
func (w *waking) record() (*record, error) {
	replaces, err := w.registry.live.place(w.owner)
	if err != nil {
		return nil, err
	}
	now, v := time.Now(), w.claim.Saved
	b := &record{registry: w.registry, id: w.id, owner: w.owner, claim: w.claim, replaces: replaces,
		calls: v.Calls, created: v.Created, born: now, used: now, since: now, active: v.Active, settings: Settings{
			Name: v.Name, Metadata: v.Metadata, Variables: v.Variables, Running: v.Running, Principal: v.Principal,
			Timeout: v.Timeout, AutoDelete: v.AutoDelete,
		}}
	w.registry.live.byID[w.id] = b
	w.claim = nil
	return b, nil
}

// done is called with mu held.
func (w *waking) done() {
	if w == nil {
		return
	}
	if w.claim != nil {
		w.claim.Drop()
	}
	w.moved()
}

// environment returns the environment of a sandbox that is being woken.
func (h *hibernator) environment(ctx context.Context, name string, slow func(),
	p runtime.Progress) (*sandbox.Environment, error) {
	if name == "" {
		return nil, nil
	}
	if slow == nil {
		slow = func() {}
	}
	if p == nil {
		p = func(string) {}
	}
	return h.Environment(ctx, name, slow, p)
}

// restore gives a guest the files that were saved.
func restore(ctx context.Context, g Guest, c *hibernation.Claim) error {
	return c.Read(func(archive io.Reader) error {
		return hibernation.Unpack(archive, func(part []byte) error { return g.Unpack(ctx, sandbox.Home, part) })
	})
}

// saves reports whether it is saved when it ends.
func (b *record) saves(f fate) bool {
	return f == saved && b.guest != nil && b.registry.Hibernates()
}

// resting returns what is done with the files of a sandbox that ends, before its guest is closed.
// It is called with mu held.
func (b *record) resting(f fate) func() {
	r, c := b.registry, b.claim
	switch {
	case b.saves(f):
		about, moved := b.saved(), r.asleep.move(b.id)
		return func() {
			err := r.asleep.save(b, about)
			r.mu.Lock()
			defer r.mu.Unlock()
			moved()
			if err != nil {
				r.asleep.Log.Error("a sandbox could not be saved", "sandbox", b.id, "err", err)
				t := r.ended.of[b.id]
				t.reason += ", and could not be saved"
				r.ended.of[b.id] = t
			}
		}
	case c == nil:
		return func() {}
	case f == removed:
		c.Remove() // before another call can find it
		return func() {}
	case b.guest == nil: // it was not woken yet
		return c.Drop
	}
	return c.Lose
}

// saved returns what is saved of it beside its files.
func (b *record) saved() hibernation.Saved {
	s, now := b.settings, time.Now()
	v := hibernation.Saved{
		Owner: b.owner, ID: b.id, Name: s.Name, Metadata: s.Metadata, Variables: s.Variables, Running: s.Running,
		Principal: s.Principal, Timeout: s.Timeout, AutoDelete: s.AutoDelete, Active: b.active, Calls: b.calls,
		Created: b.created, Used: b.used, At: now,
	}
	if b.env != nil {
		v.Environment = b.env.Name
	}
	switch {
	case !b.paused:
		v.Active += now.Sub(b.since)
	case s.AutoDelete > 0:
		v.Expires = b.since.Add(s.AutoDelete)
	}
	return v
}

// save saves a sandbox that has ended.
func (h *hibernator) save(b *record, about hibernation.Saved) error {
	ctx, cancel := context.WithTimeout(h.saving, saveTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = b.guest.Close() }) // it may not hear
	defer stop()
	c, err := b.claim, error(nil)
	if c == nil {
		if c, err = h.Store.New(b.owner, b.id); err != nil {
			return err
		}
	}
	for range saveTries {
		if err = pack(ctx, b.guest, c, about); err == nil || !about.Running || ctx.Err() != nil {
			break
		}
	}
	switch {
	case err == nil:
	case b.claim == nil:
		c.Drop()
	default:
		c.Lose()
	}
	return err
}

// pack saves the files of a guest, which is no more believed than at waking: what can't be unpacked
// isn't saved.
func pack(ctx context.Context, g Guest, c *hibernation.Claim, about hibernation.Saved) error {
	p, err := g.Pack(ctx, sandbox.Home, 0)
	if err != nil {
		return err
	}
	about.Left = leftOut(p.Left)
	return c.Save(about, func(w io.Writer) error {
		r, checking := io.Pipe()
		checked := make(chan error, 1)
		go func() {
			err := hibernation.Unpack(r, func([]byte) error { return nil })
			if err == nil {
				_, err = io.Copy(io.Discard, r) // what comes after its end
			}
			r.CloseWithError(err)
			checked <- err
		}()
		err := pieces(ctx, g, p, io.MultiWriter(w, checking))
		checking.CloseWithError(err)
		if bad := <-checked; err == nil {
			err = bad
		}
		return err
	})
}

// pieces writes an archive, of which p is the first piece.
func pieces(ctx context.Context, g Guest, p sandbox.Piece, w io.Writer) error {
	for n := int64(0); ; {
		if _, err := w.Write(p.Data); err != nil {
			return err
		}
		n += int64(len(p.Data))
		switch {
		case !p.More:
			return nil
		case len(p.Data) == 0, n > maxSaved:
			return fmt.Errorf("its archive has no end after %d bytes", n)
		}
		var err error
		if p, err = g.Pack(ctx, sandbox.Home, n); err != nil {
			return err
		}
	}
}

// maxLeft is how many of the files that were not saved are named.
const maxLeft = 5

// list adds to descriptions those of sandboxes that are saved, and not live.
func (h *hibernator) list(all []Info, live map[string]*record, saved []hibernation.Saved) []Info {
	for _, v := range saved {
		if live[v.ID] == nil {
			all = append(all, h.info(v))
		}
	}
	return all
}

// info describes a sandbox that is saved.
func (h *hibernator) info(v hibernation.Saved) Info {
	i := Info{ID: v.ID, Asleep: true, Size: v.Size, Limits: h.limits, Calls: v.Calls, Created: v.Created,
		Used: v.Used, DeletedAt: v.Expires, Settings: Settings{Name: v.Name, Metadata: v.Metadata,
			Timeout: v.Timeout, AutoDelete: v.AutoDelete}}
	if v.Environment != "" {
		i.Environment = &sandbox.Environment{Name: v.Environment}
	}
	return i
}

// leftOut names files that aren't saved.
func leftOut(files []sandbox.File) (names []string) {
	why := map[string]string{"too_large": "too large", "too_many": "too many files", "denied": "unreadable"}
	for i, f := range files {
		if i == maxLeft {
			return append(names, fmt.Sprintf("and %d more", len(files)-i))
		}
		reason := why[f.Type]
		if reason == "" {
			reason = "no file"
		}
		names = append(names, fmt.Sprintf("%.100s (%s)", f.Name, reason))
	}
	return names
}

// Missing says what a sandbox that was woken doesn't have; empty for nothing but its variables.
func (c *Call) Missing() string {
	r := c.record.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	claim := c.record.claim
	if claim == nil {
		return ""
	}
	var said []string
	if len(claim.Saved.Left) > 0 {
		said = append(said, "not saved: "+strings.Join(claim.Saved.Left, ", "))
	}
	if claim.Lost {
		said = append(said, "files are those of "+claim.Saved.At.UTC().Format("2006-01-02 15:04 MST")+
			", what came later is lost")
	}
	return strings.Join(said, "; ")
}
