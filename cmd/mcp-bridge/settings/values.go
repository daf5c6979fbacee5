package settings

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/mcp-bridge/mcp-bridge/bridge"
)

// Seconds is a duration: "30" and "30s" are the same.
type Seconds time.Duration

// Decode implements envconfig.Decoder.
func (s *Seconds) Decode(v string) error {
	d, err := time.ParseDuration(v)
	if err != nil {
		d, err = time.ParseDuration(v + "s")
	}
	if err != nil || d < 0 || d > 1e9*time.Second {
		return errors.New("it must be a duration such as 30, 30s or 2m: not negative, and at most 1e9 seconds")
	}
	*s = Seconds(d)
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

// count is a number of things at a time, or auto.
type count int

const (
	auto = math.MinInt

	maxRuns     = 256 // no client has more requests under way
	maxQueue    = 256
	minAutoRuns = 2
	maxAutoRuns = 32
	maxKept     = 256

	maxStandby    = 32
	standbyMemory = 32 << 20 // bytes that a container which waits takes, at most
)

// Decode implements envconfig.Decoder.
func (n *count) Decode(v string) error {
	if v == "auto" {
		*n = auto
		return nil
	}
	i, err := strconv.Atoi(v)
	if err != nil {
		return errors.New("it must be a whole number such as 4, or auto")
	}
	*n = count(i)
	return nil
}

// MaxRuns returns how many runs take place at a time. It goes by memory, since that is what runs
// can't share: with fewer cores each takes longer, and most wait for their tools anyway; without
// memory the machine fails. A quarter is left to everything else.
func (s Settings) MaxRuns() int {
	if s.MaxConcurrent > 0 {
		return int(s.MaxConcurrent)
	}
	return s.fit()
}

// fit returns how many containers three quarters of the machine's memory hold.
func (s Settings) fit() int {
	total, known := TotalMemory()
	if !known { // the engine is in a machine of its own, or will be
		return maxAutoRuns
	}
	return int(min(max(minAutoRuns, total/4*3/int64(s.Memory)), maxAutoRuns))
}

// Standbys returns how many containers are kept ready.
func (s Settings) Standbys() int {
	if s.Standby == auto {
		return int(min(max(1, freeMemory()/8/standbyMemory), int64(2*goruntime.NumCPU())))
	}
	return int(s.Standby)
}

// freeMemory returns the bytes that can be had without harm to others, or a guess.
func freeMemory() int64 {
	if n, known := memory("MemAvailable"); known {
		return n
	}
	return 1 << 30
}

// TotalMemory returns the bytes that the machine has, where that is known.
func TotalMemory() (n int64, known bool) { return memory("MemTotal") }

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

// tools are the names of tools that clients have.
type tools []string

// Decode implements envconfig.Decoder.
func (t *tools) Decode(v string) (err error) {
	*t, err = bridge.ToolSet(v)
	return err
}

// MaxSandboxes returns how many sandboxes that last there are at a time. Each may take as much
// memory as a run; where memory decides, half of it is theirs at most.
func (s Settings) MaxSandboxes() int {
	if s.Sandboxes == auto {
		return max(1, s.fit()/2)
	}
	return int(s.Sandboxes)
}

// MaxContainers returns how many containers are alive at a time, except for those that are warm,
// where so many sandboxes are kept. As many as memory holds are counted among those of runs, of
// which one is left at least; a number of them comes beside the runs.
func (s Settings) MaxContainers(kept int) int {
	runs := s.MaxRuns()
	if s.Sandboxes != auto || kept == 0 {
		return runs + kept
	}
	return max(runs, s.fit(), kept+1)
}
