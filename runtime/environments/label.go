package environments

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Labels of an environment's image. Its containers have them too, beside an owner's.
const (
	labelName     = "io.mcp-bridge.environment"
	labelBase     = labelName + ".base"     // id of the base image
	labelLock     = labelName + ".lock"     // digest
	labelLayer    = labelName + ".layer"    // digest
	labelPython   = labelName + ".python"   // JSON
	labelPackages = labelName + ".packages" // JSON
	labelBytecode = labelName + ".bytecode" // JSON
	labelSize     = labelName + ".size"     // bytes
	labelBuilt    = labelName + ".built"    // RFC 3339
)

// ref returns the name of an environment's image.
func ref(name string) string { return "localhost/mcp-bridge/env-" + name + ":latest" }

// labels returns what an image says of e.
func (e Environment) labels() (map[string]string, error) {
	interpreter, err := json.Marshal(e.Interpreter)
	if err != nil {
		return nil, err
	}
	packages, err := json.Marshal(e.Distributions)
	if err != nil {
		return nil, err
	}
	bytecode, err := json.Marshal(e.Bytecode)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		labelName: e.Name, labelBase: e.Base, labelLock: e.Lock, labelLayer: e.Layer,
		labelPython: string(interpreter), labelPackages: string(packages), labelBytecode: string(bytecode),
		labelSize: strconv.FormatInt(e.Size, 10), labelBuilt: e.Built.UTC().Format(time.RFC3339),
	}, nil
}

// read returns the environment that an image is. ok is false for other images, and for an
// environment's whose name went to a later one.
func read(i runtime.ListedImage) (e Environment, ok bool) {
	l := i.Labels
	e = Environment{Name: l[labelName], Base: l[labelBase], Lock: l[labelLock], Layer: l[labelLayer]}
	if !ValidName(e.Name) || !slices.Contains(i.Names, ref(e.Name)) {
		return e, false
	}
	e.Image = runtime.Image{Ref: ref(e.Name), ID: i.ID}
	var err error
	if e.Size, err = strconv.ParseInt(l[labelSize], 10, 64); err != nil {
		return e, false
	}
	if e.Built, err = time.Parse(time.RFC3339, l[labelBuilt]); err != nil {
		return e, false
	}
	if text := l[labelBytecode]; text != "" && json.Unmarshal([]byte(text), &e.Bytecode) != nil {
		return e, false
	}
	ok = json.Unmarshal([]byte(l[labelPython]), &e.Interpreter) == nil &&
		json.Unmarshal([]byte(l[labelPackages]), &e.Distributions) == nil
	return e, ok
}
