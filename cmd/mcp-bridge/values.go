package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// seconds is a duration: "30" and "30s" are the same.
type seconds time.Duration

// Decode implements envconfig.Decoder.
func (s *seconds) Decode(v string) error {
	d, err := time.ParseDuration(v)
	if err != nil {
		d, err = time.ParseDuration(v + "s")
	}
	if err != nil || d < 0 || d > 1e9*time.Second {
		return errors.New("it must be a duration such as 30, 30s or 2m: not negative, and at most 1e9 seconds")
	}
	*s = seconds(d)
	return nil
}

// size is bytes: "512m" and "536870912" are the same.
type size int64

// Decode implements envconfig.Decoder.
func (s *size) Decode(v string) error {
	n, err := units.RAMInBytes(v)
	if err != nil || n < 0 {
		return errors.New("it must be a size such as 512m or 1g")
	}
	*s = size(n)
	return nil
}

// level is a slog.Level, if one was chosen.
type level struct {
	slog.Level
	set bool
}

// Decode implements envconfig.Decoder.
func (l *level) Decode(v string) error {
	if err := l.UnmarshalText([]byte(v)); err != nil {
		return errors.New("it must be debug, info, warn or error")
	}
	l.set = true
	return nil
}

// runs is a number of runs at a time; 0 for auto.
type runs int

const (
	maxRuns     = 256 // no client has more requests under way
	maxQueue    = 256
	minAutoRuns = 2
	maxAutoRuns = 32
)

// Decode implements envconfig.Decoder.
func (n *runs) Decode(v string) error {
	if v == "auto" {
		*n = 0
		return nil
	}
	i, err := strconv.Atoi(v)
	if err != nil || i < 1 || i > maxRuns {
		return fmt.Errorf("it must be a number from 1 to %d, or auto", maxRuns)
	}
	*n = runs(i)
	return nil
}

// maxConcurrent returns how many runs take place at a time. It goes by memory, since that is what
// runs can't share: with fewer cores each takes longer, and most wait for their tools anyway;
// without memory the machine fails. A quarter is left to everything else.
func (c config) maxConcurrent() int {
	if c.MaxConcurrent > 0 {
		return int(c.MaxConcurrent)
	}
	return c.fit()
}

// fit returns how many containers three quarters of the machine's memory hold.
func (c config) fit() int {
	total, known := memory("MemTotal")
	if !known { // the engine is in a machine of its own, or will be
		return maxAutoRuns
	}
	return int(min(max(minAutoRuns, total/4*3/int64(c.Memory)), maxAutoRuns))
}

// standbys is a number of containers.
type standbys int

const (
	maxStandbys   = 32
	standbyMemory = 32 << 20 // bytes that one which waits takes, at most
)

// Decode implements envconfig.Decoder.
func (n *standbys) Decode(v string) error {
	if v == "auto" {
		*n = standbys(min(max(1, freeMemory()/8/standbyMemory), int64(2*goruntime.NumCPU())))
		return nil
	}
	i, err := strconv.Atoi(v)
	if err != nil || i < 0 || i > maxStandbys {
		return fmt.Errorf("it must be a number from 0 to %d, or auto", maxStandbys)
	}
	*n = standbys(i)
	return nil
}

// freeMemory returns the bytes that can be had without harm to others, or a guess.
func freeMemory() int64 {
	if n, known := memory("MemAvailable"); known {
		return n
	}
	return 1 << 30
}

// memory returns one of the figures of proc_meminfo(5), in bytes, where there is such a file.
func memory(name string) (n int64, known bool) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, name+": %d kB", &kib); n == 1 {
			return kib << 10, true
		}
	}
	return 0, false
}

// pathList is paths with the system's separator between them.
type pathList []string

// Decode implements envconfig.Decoder.
func (p *pathList) Decode(v string) error {
	for _, s := range filepath.SplitList(v) {
		if s != "" {
			*p = append(*p, s)
		}
	}
	return nil
}
