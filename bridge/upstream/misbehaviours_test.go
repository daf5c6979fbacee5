//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// misbehaviours are the ways in which servers have been seen to misbehave, or may.
var misbehaviours = []bad{
	// Starting.
	{what: "dies at once, with a word on stderr", mode: "dies"},
	{what: "ends at once, without a word", mode: "leaves"},
	{what: "never answers the handshake", mode: "silent", bound: startSoon},
	{what: "writes junk instead of answering the handshake", mode: "junk", bound: startSoon},
	{what: "answers the handshake with a text as its error, and ends", mode: "refuses"},
	{what: "answers the handshake with an unknown version", mode: "wrong version"},
	{what: "answers the handshake with no object", mode: "no result"},
	{what: "knows only the newer handshake", mode: "modern", next: true},
	{what: "dies of the newer handshake", mode: "normal", next: true},
	{what: "says other things before it answers the handshake", mode: "noise", next: true},
	{what: "sends 2,000 notifications before it answers the handshake", mode: "flood", next: true},
	// Listing.
	{what: "has odd schemas, and tools without a name or with another's", mode: "odd", next: true},
	{what: "names the same next page for ever", mode: "pages for ever", next: true},
	{what: "names new pages for ever", mode: "new pages for ever", next: true},
	{what: "has 11,000 tools", mode: "countless tools", next: true},
	{what: "has long definitions on every page, for ever", mode: "huge list", bound: small, next: true},
	{what: "lists no list", mode: "bad list", next: true},
	{what: "doesn't know tools/list", mode: "no list", next: true},
	{what: "never answers tools/list", mode: "silent tools", bound: listSoon, next: true},
	{what: "changes its list whenever it is read", mode: "changing list", next: true},
	// Answering.
	{what: "answers with an unknown kind of content", mode: "normal", tool: "video", next: true},
	{what: "answers with structuredContent alone", mode: "normal", tool: "structured only", next: true},
	{what: "answers null", mode: "normal", tool: "null result", next: true},
	{what: "answers with neither a result nor an error", mode: "normal", tool: "nothing", next: true},
	{what: "answers without saying that it is JSON-RPC", mode: "normal", tool: "not jsonrpc", next: true},
	{what: "answers under an unknown id", mode: "normal", play: shortly(calling("foreign id", "")),
		next: true},
	{what: "answers twice, and what wasn't asked", mode: "normal", tool: "twice", next: true},
	{what: "answers in a batch", mode: "normal", tool: "batch", next: true},
	{what: "answers behind a byte order mark", mode: "normal", tool: "byte order mark", next: true},
	{what: "answers with bytes that are no UTF-8", mode: "normal", tool: "bad utf-8", next: true},
	{what: "answers with an error that is a text", mode: "normal", tool: "error",
		args: `{"e":"no s3cr3t-value"}`, next: true},
	{what: "answers with an error whose code is no number", mode: "normal", tool: "error",
		args: `{"e":{"code":"EFAIL","message":"x"}}`, next: true},
	{what: "answers with 20,000 lists in each other", mode: "normal", tool: "deep", next: true},
	{what: "answers with ten megabytes", mode: "normal", tool: "big", next: true},
	{what: "sends a line beyond the limit", mode: "normal", tool: "huge", bound: small, next: true},
	{what: "answers 50 calls in the opposite order, once all have come", mode: "normal", play: fifty,
		next: true},
	// Beside answers.
	{what: "writes to stdout and stderr between messages", mode: "normal", tool: "chatter", next: true},
	{what: "sends 8,000 notifications before an answer", mode: "normal", tool: "notifications", next: true},
	{what: "reports progress that wasn't asked for", mode: "normal", tool: "wrong progress", next: true},
	{what: "asks for a form, a model and roots, without a client to ask", mode: "normal", play: asksAll,
		next: true},
	{what: "sends requests without end and reads no answer", mode: "normal", tool: "ask without end",
		bound: readSoon, next: true},
	{what: "asks in its results without end", mode: "modern", play: answering("demand always"), next: true},
	{what: "puts a call off for ever", mode: "modern", play: answering("demand patience"), next: true},
	{what: "asks in a result, without a client to ask", mode: "modern", tool: "demand always", next: true},
	{what: "asks nine questions in one result", mode: "modern", play: answering("demand much"), next: true},
	{what: "asks in a result to be told two megabytes again", mode: "modern", play: answering("demand memory"),
		next: true},
	{what: "asks in a result for what no client has", mode: "modern", play: answering("demand the unknown"),
		next: true},
	{what: "asks in a result for nothing at all", mode: "modern", play: answering("demand nothing"), next: true},
	{what: "asks in a result by a list", mode: "modern", play: answering("demand no object"), next: true},
	{what: "answers over the newer protocol with an unknown kind of result", mode: "modern",
		tool: "demand the future", next: true},
	{what: "asks before it lists its tools", mode: "modern asks", next: true},
	{what: "says that its list is good for no time", mode: "modern stale", play: readOften, next: true},
	{what: "sends 8,000 changes where it is listened to for changes, and ends that", mode: "modern floods",
		next: true},
	{what: "takes back that it tells of changes", mode: "modern hangs up", next: true},
	// Not answering.
	{what: "never answers a call", mode: "normal", play: shortly(calling("never", "")), next: true},
	{what: "is stuck in a call", mode: "normal", tool: "stuck", bound: answerSoon, next: true},
	{what: "answers a ping without a result", mode: "odd ping", play: shortly(calling("never", "")), next: true},
	{what: "answers no ping", mode: "no ping", tool: "never", bound: answerSoon, next: true},
	{what: "stops reading", mode: "stops reading", play: unread, bound: readSoon, next: true},
	{what: "is stopped (SIGSTOP)", mode: "normal", tool: "stopped", bound: answerSoon, next: true},
	{what: "dies in a call", mode: "normal", tool: "die", next: true},
	{what: "dies in the middle of a line", mode: "normal", tool: "half a line", next: true},
	{what: "answers and dies", mode: "normal", tool: "answer and die", next: true},
	{what: "closes its output and lives on", mode: "normal", tool: "close output", next: true},
	{what: "closes its output after a question that is never answered", mode: "normal", play: unanswered,
		next: true},
	{what: "dies before a child of its own that holds its pipes", mode: "grandchild", tool: "die", next: true},
	{what: "doesn't end when its input does, nor of SIGTERM", mode: "stubborn", tool: "echo", next: true},
	{what: "dies in every call, before it has answered any", mode: "normal", play: crashes},
}

// answering calls a tool for a client that answers whatever it is asked.
func answering(tool string) func(context.Context, *Pool) (string, error) {
	return func(ctx context.Context, p *Pool) (string, error) {
		return calling(tool, "")(WithClient(ctx, says(`{"roots":[]}`, nil)), p)
	}
}

// unanswered calls a tool for a client that doesn't answer.
func unanswered(ctx context.Context, p *Pool) (string, error) {
	var silent person
	silent.answer = func(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return calling("ask and close output", "")(WithClient(ctx, &silent), p)
}

// readOften asks for a list again and again.
func readOften(ctx context.Context, p *Pool) (string, error) {
	var said string
	for range 20 {
		var err error
		if said, err = listed(ctx, p); err != nil {
			return "", err
		}
	}
	return said + ", 20 times", nil
}

func fifty(ctx context.Context, p *Pool) (string, error) {
	const n = 50
	var wg sync.WaitGroup
	answers := make(chan bool, n)
	for i := range n {
		wg.Go(func() {
			args, _ := json.Marshal(map[string]int{"N": n, "i": i})
			got, err := p.Call(ctx, "fake", "barrier", args)
			answers <- err == nil && string(got) == string(args)
		})
	}
	wg.Wait()
	right := 0
	for range n {
		if <-answers {
			right++
		}
	}
	return fmt.Sprintf("%d right answers", right), nil
}

func asksAll(ctx context.Context, p *Pool) (string, error) {
	raw, err := p.Call(ctx, "fake", "ask", nil)
	var answers []string
	if err == nil {
		err = json.Unmarshal(raw, &answers)
	}
	return fmt.Sprintf("its answer; %d of its %d questions are refused",
		strings.Count(string(raw), `\"code\":-32601`), len(answers)), err
}

func unread(ctx context.Context, p *Pool) (string, error) {
	if _, err := p.Call(ctx, "fake", "echo", nil); err != nil {
		return "", err
	}
	return calling("echo", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`)(ctx, p)
}

// crashes calls a server that dies of each call, until it isn't started any more.
func crashes(ctx context.Context, p *Pool) (string, error) {
	for {
		_, err := p.Call(ctx, "fake", "die", nil)
		if err != nil && strings.Contains(err.Error(), "in a row") {
			return "after two deaths, that it isn't started again so soon, and of what it died", nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
}
