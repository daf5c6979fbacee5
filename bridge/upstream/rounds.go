package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// Over the newer protocol a server asks in its result: that says what the server wants to know, and
// the request is made again with the answers (MCP 2026-07-28, multi round-trip requests).
const (
	maxRounds = 10      // in which one call may ask
	maxPut    = 4       // of these in a row that ask nothing, but to be called again
	maxInputs = 8       // questions in one result
	maxAsked  = 1 << 20 // bytes of them
	maxState  = 1 << 20 // bytes that a server may have us say back to it
)

// firstPut is the pause before a request is made again that a server has only put off; it is
// doubled each time.
const firstPut = 100 * time.Millisecond

// asking are the methods whose results may ask.
var asking = []string{string(mcp.MethodToolsCall), string(mcp.MethodPromptsGet),
	string(mcp.MethodResourcesRead)}

// A question is one that stands in a result.
type question struct {
	method string
	params json.RawMessage
}

// inputRequired is a result that asks.
type inputRequired struct {
	questions map[string]question // by names of the server's choice
	state     json.RawMessage     // nil for none
}

// converse makes a request, and makes it again with the answers as long as its result asks
// something. The questions go to the client of the call, one after the other. Its errors are those
// of request; what can't be answered is one too, for the server has no use for half of the answers.
func (s *session) converse(
	ctx context.Context, method string, params map[string]any,
) (json.RawMessage, error) {
	put := 0
	for round := 0; ; round++ {
		result, err := s.request(ctx, method, params)
		if err != nil || s.meta == nil {
			return result, err
		}
		switch kind := typeOf(result); kind {
		case "", mcp.ResultTypeComplete:
			return result, nil
		case mcp.ResultTypeInputRequired:
		default:
			return nil, fmt.Errorf("its answer is of a type that is not known here: %.40q", kind)
		}
		if !slices.Contains(asking, method) {
			return nil, fmt.Errorf("it asks for input in its answer to %s, where the protocol has none", method)
		}
		if round == maxRounds {
			return nil, fmt.Errorf("it has asked for input %d times in the course of one call, which is the limit",
				maxRounds)
		}
		asked, err := readInput(result)
		if err != nil {
			return nil, fmt.Errorf("it asks for input, which is refused: %w", err)
		}
		if put++; len(asked.questions) > 0 {
			put = 0
		}
		if put > maxPut {
			return nil, fmt.Errorf("it has put the call off %d times in a row, which is the limit; try it later",
				maxPut)
		}
		if put > 0 && !s.waits(ctx, firstPut<<(put-1)) {
			return nil, s.ended(ctx)
		}
		answers, err := s.answers(ctx, asked.questions)
		if err != nil {
			return nil, err
		}
		setOrDelete(params, "inputResponses", answers, answers != nil)
		setOrDelete(params, "requestState", asked.state, asked.state != nil)
	}
}

// waits reports whether nothing has ended meanwhile.
func (s *session) waits(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.dying:
	case <-ctx.Done():
	}
	return false
}

func setOrDelete(params map[string]any, key string, value any, set bool) {
	delete(params, key)
	if set {
		params[key] = value
	}
}

// typeOf returns what kind of result one is; empty where it doesn't say, as in the older protocol.
func typeOf(result json.RawMessage) mcp.ResultType {
	var fields map[string]json.RawMessage
	if !bytes.Contains(result, []byte(`"resultType"`)) || json.Unmarshal(result, &fields) != nil {
		return ""
	}
	return mcp.ResultType(textOf(fields["resultType"]))
}

// readInput returns what a result asks, within bounds.
func readInput(result json.RawMessage) (*inputRequired, error) {
	var fields, questions map[string]json.RawMessage
	if json.Unmarshal(result, &fields) != nil ||
		json.Unmarshal(orNull(fields["inputRequests"]), &questions) != nil {
		return nil, errors.New("its questions are no object")
	}
	asked := &inputRequired{questions: map[string]question{}}
	if state := fields["requestState"]; string(orNull(state)) != "null" {
		asked.state = state
	}
	switch {
	case len(questions) == 0 && asked.state == nil:
		return nil, errors.New("it says neither what it asks nor of what it is to be told again")
	case len(questions) > maxInputs || len(fields["inputRequests"]) > maxAsked:
		return nil, fmt.Errorf("it asks more than %d questions at once, or in more than %d bytes", maxInputs,
			maxAsked)
	case len(asked.state) > maxState:
		return nil, fmt.Errorf("what it wants to be told again is longer than %d bytes", maxState)
	}
	for name, raw := range questions {
		var q map[string]json.RawMessage
		if json.Unmarshal(raw, &q) != nil || !slices.Contains(askable, textOf(q["method"])) {
			return nil, fmt.Errorf("the question %.40q is not among %v", name, askable)
		}
		asked.questions[name] = question{textOf(q["method"]), q["params"]}
	}
	return asked, nil
}

// put has the client of the call answer a question. It ends with the session too.
func (s *session) put(ctx context.Context, q question) (json.RawMessage, error) {
	c := ClientOf(ctx)
	if c == nil {
		return nil, errors.New("the call is made for no client that could be asked")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.conn.Context(), cancel)()
	return s.questions.ask(ctx, c, q.method, q.params)
}

// answers returns those of the call's client; nil where nothing is asked.
func (s *session) answers(
	ctx context.Context, questions map[string]question,
) (map[string]json.RawMessage, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	all := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		q := questions[name]
		answer, err := s.put(ctx, q)
		var refusal *RPCError
		switch {
		case err == nil:
			all[name] = answer
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case s.isDying():
			return nil, s.ended(ctx)
		case errors.As(err, &refusal): // not the server's own, as which the code would take it
			return nil, fmt.Errorf("to go on it asks for %s, which is refused: %s", q.method, refusal.Message)
		default:
			return nil, fmt.Errorf("to go on it asks for %s, which is refused: %w", q.method, err)
		}
	}
	return all, nil
}
