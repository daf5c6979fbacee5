package upstream

import "context"

// options are what a call has beside its arguments. They are one value of its context, so that
// the functions between the pool's methods and a session's requests don't have to pass them on.
type options struct {
	client   Client         // whom servers may ask; nil for none
	progress func(Progress) // nil for none
	servers  *generation    // of the pool, as they were pinned; nil for the current ones
}

type optionsKey struct{}

func optionsOf(ctx context.Context) options {
	o, _ := ctx.Value(optionsKey{}).(options)
	return o
}

// with returns ctx for a call with other options.
func with(ctx context.Context, change func(*options)) context.Context {
	o := optionsOf(ctx)
	change(&o)
	return context.WithValue(ctx, optionsKey{}, o)
}

// WithClient returns ctx for a method of Pool that is called for c.
func WithClient(ctx context.Context, c Client) context.Context {
	return with(ctx, func(o *options) { o.client = c })
}

// ClientOf returns the client that a call with this context is made for; nil for none.
func ClientOf(ctx context.Context) Client { return optionsOf(ctx).client }

// WithProgress returns ctx for a Call whose progress is to be told to f: the server is asked for it
// then, and only then.
//
// f is called in the order of the server's notifications, from one goroutine at a time, and no more
// once Call has returned. It must not block and must not use the pool: nothing else that the server
// says is heard meanwhile. A server may report as often as it likes.
func WithProgress(ctx context.Context, f func(Progress)) context.Context {
	return with(ctx, func(o *options) { o.progress = f })
}

// Observer returns what is told the progress of a call with this context; nil for nothing.
func Observer(ctx context.Context) func(Progress) { return optionsOf(ctx).progress }
