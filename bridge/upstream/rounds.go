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

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
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

// inputRequired is a result that asks.
type inputRequired struct {
	questions map[string]question // by names of the server's choice
	state     json.RawMessage     // nil for none
}

type question struct {
	Method string
	Params json.RawMessage
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
		asked, err := readInput(method, result)
		switch {
		case err != nil:
			return nil, err
		case asked == nil:
			return result, nil
		case round == maxRounds:
			return nil, fmt.Errorf("it has asked for input %d times in the course of one call, which is the limit",
				maxRounds)
		}
		if put++; len(asked.questions) > 0 {
			put = 0
		}
		switch {
		case put > maxPut:
			return nil, fmt.Errorf("it has put the call off %d times in a row, which is the limit; try it later",
				maxPut)
		case put > 0:
			select {
			case <-time.After(firstPut << (put - 1)):
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-s.dying:
				return nil, s.ended(ctx)
			}
		}
		delete(params, "inputResponses")
		delete(params, "requestState")
		if asked.state != nil {
			params["requestState"] = asked.state
		}
		if len(asked.questions) > 0 {
			params["inputResponses"], err = s.answers(ctx, asked.questions)
			if err != nil {
				return nil, err
			}
		}
	}
}

// readInput returns what a result over the newer protocol asks, within bounds; nil for nothing.
func readInput(method string, result json.RawMessage) (*inputRequired, error) {
	var fields map[string]json.RawMessage
	if !bytes.Contains(result, []byte(`"resultType"`)) || json.Unmarshal(result, &fields) != nil {
		return nil, nil
	}
	switch kind := jsonrpc.TextOf(fields["resultType"]); {
	case kind == "" || kind == string(mcp.ResultTypeComplete):
		return nil, nil
	case kind != string(mcp.ResultTypeInputRequired):
		return nil, fmt.Errorf("its answer is of a type that is not known here: %.40q", kind)
	case !slices.Contains(asking, method):
		return nil, fmt.Errorf("it asks for input in its answer to %s, where the protocol has none", method)
	}
	asked := &inputRequired{state: text.Given(fields["requestState"])}
	why := ""
	switch err := json.Unmarshal(orNull(fields["inputRequests"]), &asked.questions); {
	case err != nil:
		why = "its questions are no object"
	case len(asked.questions) == 0 && asked.state == nil:
		why = "it says neither what it asks nor of what it is to be told again"
	case len(asked.questions) > maxInputs || len(fields["inputRequests"]) > maxAsked:
		why = fmt.Sprintf("it asks more than %d questions at once, or in more than %d bytes", maxInputs, maxAsked)
	case len(asked.state) > maxState:
		why = fmt.Sprintf("what it wants to be told again is longer than %d bytes", maxState)
	}
	for name, q := range asked.questions {
		if why == "" && !slices.Contains(askable, q.Method) {
			why = fmt.Sprintf("the question %.40q is not among %v", name, askable)
		}
	}
	if why != "" {
		return nil, errors.New("it asks for input, which is refused: " + why)
	}
	return asked, nil
}

// answers returns what the client of the call answers, in the order of the questions' names. It
// ends with the session too.
func (s *session) answers(
	ctx context.Context, questions map[string]question,
) (map[string]json.RawMessage, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.conn.Context(), cancel)()
	all := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		q := questions[name]
		answer, err := s.questions.ask(asking, ClientOf(ctx), q.Method, q.Params)
		var refusal *RPCError
		switch {
		case err == nil:
			all[name] = answer
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case s.isDying():
			return nil, s.ended(ctx)
		case errors.As(err, &refusal): // not the server's own, as which the code would take it
			return nil, fmt.Errorf("to go on it asks for %s, which is refused: %s", q.Method, refusal.Message)
		default:
			return nil, fmt.Errorf("to go on it asks for %s, which is refused: %w", q.Method, err)
		}
	}
	return all, nil
}
