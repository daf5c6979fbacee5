package approvals

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

const maxRecord = 4 << 20 // bytes of the file

// record is the file.
type record struct {
	state
	Serving time.Time `json:"serving,omitzero"` // since when code is run; zero: none is
	Killed  bool      `json:"killed,omitempty"` // it was, until this was written
}

// readRecord returns what the record says. Without one, nothing is known and no code
// was run. With an error, nothing is known and code was run all the time.
func readRecord(path string) (state, error) {
	r, err := load(path)
	if err != nil {
		return state{Known: map[string]string{}, Served: spans{{Until: time.Now()}}}, err
	}
	if !r.Serving.IsZero() {
		r.Served = append(r.Served, span{r.Serving, time.Now()})
	}
	r.Served = r.Served.joined()
	return r.state, nil
}

// load reads the file. Of a bridge that was killed, it has the time until then among Served.
func load(path string) (r record, err error) {
	r.Known = map[string]string{}
	if path == "" {
		return r, nil
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	var content []byte
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxRecord) {
		err = fmt.Errorf("%s is not a file of less than %d bytes", path, maxRecord)
	}
	if err == nil {
		content, err = os.ReadFile(path)
	}
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		return r, err
	}
	if r.Known == nil {
		r.Known = map[string]string{}
	}
	if r.Killed && !r.Serving.IsZero() {
		r.Served = append(r.Served, span{r.Serving, changed(path)})
		r.Serving, r.Killed = time.Time{}, false
	}
	return r, nil
}

// killed returns the record for a Keeper, of one while code is run.
func (r record) killed() []byte {
	r.state, r.Killed = r.bounded(), true
	return text.JSON(r)
}

// write replaces the record as a whole. The caller has a.mu.
func (a *Approvals) write(r record) error {
	r.Known, r.Deciding = newest(a.state.Known), newest(a.state.Deciding)
	if err := r.save(a.cfg.Record); err != nil {
		return err
	}
	for _, dir := range a.dead {
		_ = os.RemoveAll(dir)
	}
	a.state.dirty, a.dead = false, nil
	return nil
}

// unwritable returns that the record can't be written.
func unwritable(path string, err error) error {
	return &text.HintError{
		Err:  fmt.Errorf("the record of approved servers, %s, can't be written: %w", path, err),
		Next: "see that you may write to the directory " + filepath.Dir(path) + ", and that its disk isn't full"}
}

// Writable returns nil if the record can be written, or else a *text.HintError.
func (a *Approvals) Writable() error { return writable(a.cfg.Record) }

func writable(path string) error {
	if path == "" {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return unwritable(path, err)
	}
	return nil
}

// save replaces the file. It returns when the record is on the disk: what it says must be true
// after a power cut.
func (r record) save(path string) error {
	if path == "" {
		return nil
	}
	content, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		pattern := filepath.Base(path) + ".*"
		filelock.Sweep(filepath.Dir(path), pattern)
		err = filelock.Replace(path, pattern, content)
	}
	if err != nil {
		return unwritable(path, err)
	}
	return nil
}
