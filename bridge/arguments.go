package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// arguments are what a caller of run_python asks for, checked.
type arguments struct {
	code    string
	catalog *catalog // of the moment of the call
	servers []entry  // that the code may call, by name

	providers []entrypoint.Provider // the same, for the guest
	timeout   time.Duration
	most      time.Duration // that timeout may be
	files     []string      // paths of files of the user's that the code is to find
	clamped   string        // what the caller is told when timeout is not what was asked for

	ask func(context.Context, string) (bool, error) // of a Direct; nil: the MCP client is asked
}

// maxEcho bounds how much of a name that a caller made up is repeated in an error, in characters.
const maxEcho = 200

var argumentNames = []string{"code", "servers", "timeout"}

// An ArgumentError says in one sentence what is wrong with a call's arguments and what to do.
type ArgumentError string

// Error implements error.
func (e ArgumentError) Error() string { return string(e) }

func bad(format string, a ...any) error { return ArgumentError(fmt.Sprintf(format, a...)) }

// decode checks the arguments by hand: schema validators of hosts differ, and their messages don't help a model. An optional
// argument that is null counts as absent, as some models write it so. Errors are ArgumentErrors.
func (b *Bridge) decode(c *catalog, raw json.RawMessage) (arguments, error) {
	names := argumentNames
	if b.inputs != nil {
		names = slices.Concat(names, []string{filesName})
	}
	given, err := fields(raw, runPythonName, names)
	if err != nil {
		return arguments{}, err
	}
	a := arguments{catalog: c, servers: c.servers, providers: c.announced.providers, timeout: b.timeout, most: b.maxTimeout}
	if a.code, err = decodeCode(given["code"]); err != nil {
		return arguments{}, err
	}
	if v := given["servers"]; v != nil {
		if a.servers, err = c.decodeServers(v); err != nil {
			return arguments{}, err
		}
		a.providers = announcing(a.servers).providers
	}
	if v := given[filesName]; v != nil {
		if a.files, err = b.decodeFiles(v); err != nil {
			return arguments{}, err
		}
	}
	if v := given["timeout"]; v != nil {
		if a.timeout, err = decodeTimeout(v); err != nil {
			return arguments{}, err
		}
		if a.timeout > b.maxTimeout {
			a.clamped = fmt.Sprintf("timeout: %.20s s is longer than this server allows; the run had %s s", v, seconds(b.maxTimeout))
			a.timeout = b.maxTimeout
		}
	}
	return a, nil
}

// fields takes the arguments of a tool apart. A null value is left out; an unknown or repeated name is refused.
func fields(raw json.RawMessage, tool string, names []string) (map[string]json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return given, nil
	case !json.Valid(raw):
		return nil, bad(`the arguments are no valid JSON; pass an object such as {%q: "…"}`, names[0])
	case raw[0] != '{':
		return nil, bad(`the arguments must be an object such as {%q: "…"}, not %s`, names[0], kind(raw))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token() // the brace; the rest is valid too
	seen := map[string]bool{}
	for dec.More() {
		t, _ := dec.Token()
		name, _ := t.(string)
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, bad("argument %q can't be read: %v", text.Brief(name, maxEcho), err)
		}
		if !slices.Contains(names, name) {
			last := len(names) - 1
			return nil, bad("%s has no argument %q%s; it takes %s and %s", tool, text.Brief(name, maxEcho), didYouMean(name, names), strings.Join(names[:last], ", "), names[last])
		}
		if seen[name] {
			return nil, bad("argument %q is given twice; give it once", name)
		}
		seen[name] = true
		if string(v) != "null" {
			given[name] = v
		}
	}
	return given, nil
}

func decodeCode(v json.RawMessage) (string, error) {
	if v == nil {
		return "", bad(`argument "code" is missing; pass the Python source to run as a string`)
	}
	var code string
	if json.Unmarshal(v, &code) != nil {
		return "", bad(`argument "code" must be a string with Python source, not %s`, kind(v))
	}
	if strings.TrimSpace(code) == "" {
		return "", bad(`argument "code" is empty; pass the Python source to run`)
	}
	if len(code) > sandbox.MaxCode {
		return "", bad(`argument "code" is %d bytes long; at most %d can be run: pass data through a tool instead`, len(code), sandbox.MaxCode)
	}
	return code, nil
}

// decodeServers resolves names and aliases; what is named twice counts once. The empty list is valid: no servers.
func (c *catalog) decodeServers(v json.RawMessage) ([]entry, error) {
	var items []json.RawMessage
	if json.Unmarshal(v, &items) != nil {
		return nil, bad(`argument "servers" must be a list of server names such as ["github"], not %s; leave it out for all servers`, kind(v))
	}
	chosen := []entry{}
	for _, item := range items {
		var name string
		if kind(item) != "a string" || json.Unmarshal(item, &name) != nil {
			return nil, bad(`argument "servers" must be a list of server names, but holds %s; leave it out for all servers`, kind(item))
		}
		e, ok := c.find(name)
		if !ok {
			return nil, ArgumentError(c.unknown(name, c.servers))
		}
		if !slices.Contains(chosen, e) {
			chosen = append(chosen, e)
		}
	}
	slices.SortFunc(chosen, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return chosen, nil
}

// decodeTimeout takes a positive finite number of seconds. What is too long for a Duration is the longest one.
func decodeTimeout(v json.RawMessage) (time.Duration, error) {
	if kind(v) != "a number" {
		return 0, bad(`argument "timeout" must be a positive number of seconds such as 30, not %s`, kind(v))
	}
	s, err := strconv.ParseFloat(string(v), 64)
	if err != nil || math.IsInf(s, 0) || math.IsNaN(s) || s <= 0 {
		return 0, bad(`argument "timeout" must be a positive number of seconds such as 30, not %.40s`, v)
	}
	if s >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64, nil
	}
	return max(time.Duration(s*float64(time.Second)), time.Millisecond), nil
}

// kind names the JSON type of a valid value.
func kind(v json.RawMessage) string {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return "nothing"
	}
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// seconds writes a duration as seconds without zeros behind: 30, 0.5.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
