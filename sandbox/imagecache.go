package sandbox

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	memoryFile    = "images.json"
	maxMemoryFile = 64 << 10 // bytes; a longer file isn't ours
	maxMemories   = 100      // images; beyond that all are forgotten, and asked again
)

// remembered is what was found out about an image before: known, or an error, or neither.
func (s *Sandbox) remembered(key string) (p Python, known bool, err error) {
	m := &s.probes
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.read {
		m.read, m.good, m.bad = true, map[string]Python{}, map[string]error{}
		if s.cfg.CacheDir != "" {
			m.good = readMemory(filepath.Join(s.cfg.CacheDir, memoryFile))
		}
	}
	p, known = m.good[key]
	return p, known, m.bad[key]
}

// remember keeps an answer: a good one on disk too, one against the image until the bridge ends,
// and any other failure, which may be the engine's, not at all.
func (s *Sandbox) remember(key string, p Python, err error) {
	m := &s.probes
	m.mu.Lock()
	defer m.mu.Unlock()
	var unfit *UnfitError
	switch {
	case errors.As(err, &unfit):
		m.bad[key] = err
	case err == nil:
		if len(m.good) >= maxMemories {
			clear(m.good)
		}
		m.good[key] = p
		if !strings.Contains(key, "sha256:") || s.cfg.CacheDir == "" {
			return // no content's own name, so it may mean something else tomorrow
		}
		if err := writeMemory(s.cfg.CacheDir, m.good); err != nil {
			s.log.Debug("what is known of images could not be written down", "err", err)
		}
	}
}

// readMemory reads what was written down. A file that makes no sense is as if it weren't there.
func readMemory(path string) map[string]Python {
	good := map[string]Python{}
	f, err := os.Open(path)
	if err != nil {
		return good
	}
	defer f.Close()
	var read map[string]Python
	if json.NewDecoder(io.LimitReader(f, maxMemoryFile)).Decode(&read) != nil {
		return good
	}
	for key, p := range read {
		if oldEnough(runtime.Image{}, p) == nil && len(good) < maxMemories {
			good[key] = p
		}
	}
	return good
}

// writeMemory replaces the file as a whole, so that another bridge reads the old one or the new
// one.
func writeMemory(dir string, good map[string]Python) error {
	b, err := json.Marshal(good)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, memoryFile)
	whole := path + "." + rand.Text()
	err = os.WriteFile(whole, b, 0o600)
	if err == nil {
		err = os.Rename(whole, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(whole))
	}
	return nil
}
