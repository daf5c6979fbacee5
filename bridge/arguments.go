package bridge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// arguments are what a caller of run_python asks for, checked.
type arguments struct {
	code    string
	catalog *catalog.Catalog // of the moment of the call
	servers []catalog.Server // that the code may call, by name

	timeout time.Duration
	most    time.Duration // that timeout may be
	files   []string      // paths of files of the user's that the code is to find
	sandbox string        // NewSandbox or an id; empty where the caller names none
	clamped string        // what the caller is told when timeout is not what was asked for
	reads   bool          // the caller has read_output
}

// A decoder checks the arguments of run_python.
type decoder struct {
	inputs    *files.Inputs // nil: there is no argument for files
	sandboxes bool          // there is one for sandboxes
	reads     bool          // callers have read_output
	limits    catalog.Limits
}

var argumentNames = []string{"code", "servers", "timeout"}

// decode checks the arguments by hand: schema validators of hosts differ, and their messages don't
// help a model. An optional argument that is null counts as absent, as some models write it so.
// Errors are args.Errors.
func (d decoder) decode(c *catalog.Catalog, raw json.RawMessage) (arguments, error) {
	names := argumentNames
	if d.inputs != nil {
		names = slices.Concat(names, []string{filesName})
	}
	if d.sandboxes {
		names = slices.Concat(names, []string{sandboxName})
	}
	given, err := args.Fields(raw, runPythonName, names)
	if err != nil {
		return arguments{}, err
	}
	a := arguments{catalog: c, servers: c.Servers(), timeout: d.limits.Timeout, most: d.limits.MaxTimeout,
		reads: d.reads}
	if a.code, err = decodeCode(given["code"]); err != nil {
		return arguments{}, err
	}
	if v := given["servers"]; v != nil {
		if a.servers, err = c.DecodeServers(v); err != nil {
			return arguments{}, err
		}
	}
	if v := given[filesName]; v != nil {
		if a.files, err = d.decodeFiles(v); err != nil {
			return arguments{}, err
		}
	}
	if v := given[sandboxName]; v != nil {
		if json.Unmarshal(v, &a.sandbox) != nil || a.sandbox == "" {
			return arguments{}, args.Errorf(
				`argument "sandbox" must be %q or the id of a sandbox, such as "k7f2", not %.40s`, NewSandbox, v)
		}
	}
	if v := given["timeout"]; v != nil {
		if a.timeout, err = decodeTimeout(v); err != nil {
			return arguments{}, err
		}
		if a.timeout > a.most {
			a.clamped = fmt.Sprintf("timeout: %.20s s is longer than this server allows; the run had %s s",
				v, text.Seconds(a.most))
			a.timeout = a.most
		}
	}
	return a, nil
}

func decodeCode(v json.RawMessage) (string, error) {
	if v == nil {
		return "", args.Errorf(`argument "code" is missing; pass the Python source to run as a string`)
	}
	var code string
	if json.Unmarshal(v, &code) != nil {
		return "", args.Errorf(`argument "code" must be a string with Python source, not %s`, args.Kind(v))
	}
	if strings.TrimSpace(code) == "" {
		return "", args.Errorf(`argument "code" is empty; pass the Python source to run`)
	}
	if len(code) > sandbox.MaxCode {
		return "", args.Errorf(`argument "code" is %d bytes long; at most %d can be run: pass data through a tool`,
			len(code), sandbox.MaxCode)
	}
	return code, nil
}

// decodeTimeout takes a positive finite number of seconds. What is too long for a Duration is the
// longest one.
func decodeTimeout(v json.RawMessage) (time.Duration, error) {
	s, err := strconv.ParseFloat(args.Digits(v), 64)
	if err != nil || math.IsInf(s, 0) || math.IsNaN(s) || s <= 0 {
		return 0, args.Errorf(`argument "timeout" must be a positive number of seconds such as 30, not %.40s`, v)
	}
	if s >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64, nil
	}
	return max(time.Duration(s*float64(time.Second)), time.Millisecond), nil
}
