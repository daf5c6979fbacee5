package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// toolServer is the argument that makes this program an MCP server with a number of tools.
const toolServer = "tool-server"

// maxTools bounds that number.
const maxTools = 10_000

// serveTools answers one client until its input ends.
func serveTools(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("tool-server takes the number of tools")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 0 || n > maxTools {
		return fmt.Errorf("%q is no number of tools from 0 to %d", args[0], maxTools)
	}
	lines := bufio.NewReaderSize(in, 64<<10)
	answers := json.NewEncoder(out)
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("the client wrote what is no message: %w", err)
		}
		if len(m.ID) == 0 {
			continue
		}
		if err := answers.Encode(answer(m, n)); err != nil {
			return err
		}
	}
}

func answer(m message, tools int) map[string]any {
	a := map[string]any{"jsonrpc": "2.0", "id": m.ID}
	switch m.Method {
	case "initialize":
		a["result"] = map[string]any{
			"protocolVersion": "2025-11-25",
			"capabilities":    map[string]any{"tools": map[string]any{}},
			"serverInfo":      map[string]any{"name": "bench-tools", "version": "1"},
		}
	case "ping":
		a["result"] = map[string]any{}
	case "tools/list":
		a["result"] = map[string]any{"tools": listed(tools)}
	default:
		a["error"] = map[string]any{"code": -32601, "message": "there is no method " + m.Method + " here"}
	}
	return a
}

// listed returns tools of the size that those of public servers have: about a kilobyte each.
func listed(n int) []map[string]any {
	all := make([]map[string]any, n)
	for i := range all {
		properties := map[string]any{}
		for p := range 8 {
			properties[fmt.Sprintf("parameter_%d", p)] = map[string]any{
				"type":        "string",
				"description": "A parameter that is described in a sentence of some length, as parameters are.",
			}
		}
		all[i] = map[string]any{
			"name":        fmt.Sprintf("tool_%03d", i),
			"description": "A tool that no call uses, described as tools are, in a sentence or two.",
			"inputSchema": map[string]any{
				"type": "object", "properties": properties, "required": []string{"parameter_0"},
			},
		}
	}
	return all
}
