package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/filelock"
)

// lockWait is for another process that changes the grants.
const lockWait = 5 * time.Second

// A Grant is the user's word that a tool may be called for good, where the policy has the user asked.
type Grant struct {
	Server     string    `json:"server"`
	Tool       string    `json:"tool"`
	Definition string    `json:"definition"` // Hash of what the server is: with another one the user is asked again
	Since      time.Time `json:"since"`

	// Seen is what the server said of the tool then. A grant without it, of an older version or of
	// an unknown tool, is completed by the tool's next call.
	Seen Seen `json:"seen,omitzero"`
}

// same says whether two grants are of the same thing.
func (g Grant) same(o Grant) bool {
	return g.Server == o.Server && g.Tool == o.Tool && g.Definition == o.Definition
}

// Grants are the user's, in a file that only the user can read. The file is read each time, so that a
// grant removed by another process doesn't hold for the next call. Grants are safe for concurrent
// use, also by several processes.
type Grants struct{ path string }

// NewGrants takes the path of the file; it and its directory are made when there is something to keep.
func NewGrants(path string) *Grants { return &Grants{path} }

// Path is where the file is.
func (g *Grants) Path() string { return g.path }

// List gives all, by server, tool and age.
func (g *Grants) List() ([]Grant, error) {
	text, err := readFile(g.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var file struct {
		Grants []Grant `json:"grants"`
	}
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what was allowed for good, %s: %w; remove the file to begin anew", g.path, err)
	}
	slices.SortStableFunc(file.Grants, func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool), a.Since.Compare(b.Since))
	})
	return file.Grants, nil
}

// Find returns the grant of a tool for this definition of its server. Seen.Changed reports whether it
// still holds.
func (g *Grants) Find(want Grant) (Grant, bool, error) {
	all, err := g.List()
	i := slices.IndexFunc(all, want.same)
	if i < 0 {
		return Grant{}, false, err
	}
	return all[i], true, err
}

// Add saves a grant in place of one of the same tool and definition. Its time is now if it has none.
func (g *Grants) Add(n Grant) error {
	if n.Since.IsZero() {
		n.Since = time.Now().UTC().Truncate(time.Second)
	}
	_, err := g.change(func(all []Grant) []Grant {
		return append(slices.DeleteFunc(all, n.same), n)
	})
	return err
}

// Pin adds what the server says of the tool to a grant that lacks it.
func (g *Grants) Pin(n Grant) error {
	_, err := g.change(func(all []Grant) []Grant {
		for i := range all {
			if all[i].same(n) && all[i].Seen == (Seen{}) {
				all[i].Seen = n.Seen
			}
		}
		return all
	})
	return err
}

// Remove forgets those that fit, and says how many they were.
func (g *Grants) Remove(fits func(Grant) bool) (int, error) {
	return g.change(func(all []Grant) []Grant { return slices.DeleteFunc(all, fits) })
}

// change replaces the file as a whole, and says by how many grants it got shorter.
func (g *Grants) change(f func([]Grant) []Grant) (fewer int, err error) {
	if err := os.MkdirAll(filepath.Dir(g.path), 0o700); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	release, err := filelock.Acquire(ctx, g.path+".lock")
	if err != nil {
		return 0, err
	}
	defer release()
	all, err := g.List()
	if err != nil {
		return 0, err
	}
	before := len(all)
	all = f(all)
	text, err := json.MarshalIndent(map[string]any{"grants": all}, "", "  ")
	if err == nil && len(text) >= maxFile {
		err = fmt.Errorf("%d grants are kept already, in %d bytes: forget some, with mcp-bridge policy forget", before, maxFile)
	}
	if err != nil {
		return 0, err
	}
	return before - len(all), filelock.Replace(g.path, filepath.Base(g.path)+".*", text, []byte("\n"))
}
