package bridge

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxParked is how many calls of one client may wait for answers at a time.
const maxParked = 16

// What is wrong with a requestState.
var (
	errForeignState = errors.New("requestState was not issued by this server to this client for this call")
	errUsedState    = errors.New("requestState was used before, or its call is over: send the call without it to run the code again")
	errLateState    = fmt.Errorf("the call was ended, since %w; send it without requestState to run the code again", errUnanswered)
)

// parking holds the calls of one client that wait for answers. A call is found by the state that its questions came with: an
// id, the number of the turn and an end, authenticated together with a digest of the call by a key that is this client's. So
// a state serves once, for the same call, of the same client, for as long as the call is held. It is safe for concurrent use.
type parking struct {
	self mcp.Implementation
	log  *slog.Logger
	key  [sha256.Size]byte

	mu     sync.Mutex
	closed bool
	calls  map[string]*dialogue
}

func newParking(self mcp.Implementation, log *slog.Logger) *parking {
	p := &parking{self: self, log: log, calls: map[string]*dialogue{}}
	_, _ = rand.Read(p.key[:]) // never fails
	return p
}

// inputRequired is the result of a call that is parked.
type inputRequired struct {
	Type     mcp.ResultType          `json:"resultType"`
	Requests map[string]inputRequest `json:"inputRequests"`
	State    string                  `json:"requestState"`
	Meta     map[string]any          `json:"_meta"`
}

type inputRequest struct {
	Method string `json:"method"`
	Params any    `json:"params,omitempty"`
}

// again is what a call that may have come before says.
type again struct {
	digest  []byte // of the tool's name and arguments
	state   string
	answers map[string]json.RawMessage
}

// readAgain reads a call. It is compared by what its arguments are, not by how they are written.
func readAgain(text []byte) (a again, err error) {
	var call struct {
		Params struct {
			Arguments any                        `json:"arguments"`
			State     *string                    `json:"requestState"`
			Answers   map[string]json.RawMessage `json:"inputResponses"`
		} `json:"params"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&call); err != nil {
		return a, errors.New("requestState must be a string and inputResponses an object")
	}
	sum := sha256.Sum256(encode([]any{runPythonName, call.Params.Arguments}))
	a.digest, a.answers = sum[:], call.Params.Answers
	if call.Params.State != nil {
		a.state = *call.Params.State
	}
	return a, nil
}

// ticket is what a state says.
type ticket struct {
	ID   string `json:"id"`
	Turn int    `json:"turn"`
	Ends int64  `json:"ends"` // Unix milliseconds
}

// state returns what d comes again with. It is called with d's mu held.
func (p *parking) state(d *dialogue, ends time.Time) string {
	said := encode(ticket{d.id, d.turn, ends.UnixMilli()})
	return base64.RawURLEncoding.EncodeToString(said) + "." + base64.RawURLEncoding.EncodeToString(p.mac(said, d.digest))
}

func (p *parking) mac(said, digest []byte) []byte {
	h := hmac.New(sha256.New, p.key[:])
	h.Write(digest) // of fixed length
	h.Write(said)
	return h.Sum(nil)
}

// resume goes on with the call that a belongs to, whose latest request is x.
func (p *parking) resume(x *exchange, a again) (*dialogue, error) {
	left, right, _ := strings.Cut(a.state, ".")
	said, err := base64.RawURLEncoding.Strict().DecodeString(left)
	mac, macErr := base64.RawURLEncoding.Strict().DecodeString(right)
	var t ticket
	switch {
	case err != nil, macErr != nil, !hmac.Equal(mac, p.mac(said, a.digest)), json.Unmarshal(said, &t) != nil:
		return nil, errForeignState
	case time.Now().UnixMilli() >= t.Ends:
		return nil, errLateState
	}
	p.mu.Lock()
	d := p.calls[t.ID]
	p.mu.Unlock()
	if d == nil || !d.resume(x, t.Turn, a.answers) {
		return nil, errUsedState
	}
	p.forget(d)
	return d, nil
}

// admits holds d, unless there are too many.
func (p *parking) admits(d *dialogue) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.calls) >= maxParked {
		return false
	}
	p.calls[d.id] = d
	return true
}

func (p *parking) forget(d *dialogue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, d.id)
}

// close ends the calls that are held, and holds no more.
func (p *parking) close() {
	p.mu.Lock()
	p.closed = true
	held := slices.Collect(maps.Values(p.calls))
	p.mu.Unlock()
	for _, d := range held {
		d.mu.Lock()
		if d.limit != nil {
			d.abandon(errClientGone)
		}
		d.mu.Unlock()
	}
}
