package sandboxes

import (
	"context"
	"time"
)

// share makes a call of a session's that names no sandbox, or ends the session.
func (p *pair) share(owner string) string {
	session := "session of " + owner
	b := p.model.shared[session]
	lives := b != nil && !b.ended
	switch {
	case lives && p.random.IntN(6) == 0:
		p.EndShared(session)
		delete(p.model.shared, session)
		b.end("its session is over")
		p.seen["its session is over"]++
		return session + " is over"
	case lives && b.making != nil:
		return "nothing"
	case lives:
		p.seen["shared again"]++
		p.use(owner, b, true, p.random.IntN(2) == 0, func(ctx context.Context) (*Call, error) {
			return p.Shared(ctx, owner, session, Settings{}, nil)
		})
		return "a call of " + session + " in " + b.id
	}
	p.seen["shared"]++
	before := ""
	if b != nil && b.reason != "" {
		before = "sandbox " + b.id + " has ended: " + b.reason
	}
	next := p.model.begin(owner, Settings{})
	c, err := p.Shared(context.Background(), owner, session, Settings{}, nil)
	if err == nil && c.Before != before {
		p.t.Fatalf("%s is told %q, want %q", session, c.Before, before)
	}
	if next != nil {
		p.model.shared[session] = next
	}
	return "begin for " + session + p.begun(next, c, err)
}

// update changes the times of a sandbox, which may be over already.
func (p *pair) update(owner string, b *modelBox, mine bool) {
	timeout := time.Duration(p.random.IntN(90)) * time.Minute
	autoDelete := time.Duration(p.random.IntN(90)) * time.Minute
	_, err := p.Update(owner, b.id, func(s *Settings) { s.Timeout, s.AutoDelete = timeout, autoDelete })
	p.same(err, owner, b, mine)
	if mine {
		p.seen["updated"]++
		b.settings.Timeout, b.settings.AutoDelete = timeout, autoDelete
		b.due()
	}
}

// remove removes what an owner has who is gone for good.
func (p *pair) remove(owner string) {
	own := p.model.live(owner)
	n := p.RemoveOf(context.Background(), func(of string) bool { return of == owner }, "its token was revoked")
	if n != len(own) {
		p.t.Fatalf("%d were removed of %s, want %d", n, owner, len(own))
	}
	for _, b := range own {
		p.seen["removed"]++
		b.end("its token was revoked")
	}
}
