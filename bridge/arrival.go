package bridge

import (
	"context"
	"sync"
)

// arrival keeps calls in the order in which the client sent them until they are in the queue: each is worked on by a goroutine of
// its own, and those run in any order. The zero value is of a call that has no place in it.
type arrival struct {
	before <-chan struct{} // closed when all calls before it have come; nil: there are none
	came   func()          // closes what the next one waits for; may be called again
}

// follow is the arrival of a call after the one that closes before, and what it closes itself.
func follow(before <-chan struct{}) (arrival, <-chan struct{}) {
	done := make(chan struct{})
	return arrival{before, sync.OnceFunc(func() { close(done) })}, done
}

// wait returns when all calls before this one have come. That takes as long as it takes to read their arguments: none of them waits
// for anything else before it has come, so a cancel needn't end it.
func (a arrival) wait() {
	if a.before != nil {
		<-a.before
	}
}

// has says that the call has come, or won't any more.
func (a arrival) has() {
	if a.came != nil {
		a.wait()
		a.came()
	}
}

// orderOf is the arrival of the call whose context this is.
func orderOf(ctx context.Context) arrival {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x.order
	}
	return arrival{}
}
