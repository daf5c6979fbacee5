package bridge

import (
	"encoding/json"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// filesName is the argument of run_python that names files of the user's.
const filesName = "files"

// aboutFiles returns what the tool's definition says of the argument; empty where there isn't one.
func aboutFiles(inputs *files.Inputs) string {
	if inputs == nil {
		return ""
	}
	return "Files to copy to " + sandbox.InputDir + " first, from " + inputs.Dirs()
}

// decodeFiles checks that the files can be opened now, so that a wrong path is refused before the
// call waits for anything. They are opened again for the run: a call that waits holds none open.
func (d decoder) decodeFiles(v json.RawMessage) (paths []string, err error) {
	var elements []json.RawMessage
	if json.Unmarshal(v, &elements) != nil {
		return nil, args.Errorf(`argument "files" must be a list of paths below %s, not %s`,
			d.inputs.Dirs(), args.Kind(v))
	}
	for i, e := range elements {
		path := ""
		switch err := json.Unmarshal(e, &path); {
		case err != nil || args.Kind(e) == "null":
			return nil, args.Errorf(`argument "files"[%d] must be a path below %s, not %s`,
				i, d.inputs.Dirs(), args.Kind(e))
		case path == "":
			return nil, args.Errorf(`argument "files"[%d] must be a path below %s, not an empty string`,
				i, d.inputs.Dirs())
		}
		paths = append(paths, path)
	}
	_, closeAll, err := d.inputs.Open(paths)
	closeAll()
	if err != nil {
		return nil, args.Errorf(`argument "files": %s`, text.Line(err.Error()))
	}
	return paths, nil
}
