package wheels

import (
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// TestRealWheels makes the environment data twice from PyPI's wheels, the second time from the
// cache, which MCP_BRIDGE_TEST_WHEELS names.
func TestRealWheels(t *testing.T) {
	dir := os.Getenv("MCP_BRIDGE_TEST_WHEELS")
	if dir == "" {
		t.Skip("downloads 58 MB into the directory that MCP_BRIDGE_TEST_WHEELS names; make wheels sets it")
	}
	lock, err := DataLock(python)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := lock.Choose(python)
	if err != nil {
		t.Fatal(err)
	}
	var sums [2][sha256.Size]byte
	for i := range sums {
		start := time.Now()
		files, err := (&Cache{Dir: dir, Index: IndexFrom(os.Getenv)}).Fetch(t.Context(), chosen)
		var e *Error
		if errors.As(err, &e) {
			t.Skipf("PyPI isn't reachable: %v (%s)", err, e.Next)
		} else if err != nil {
			t.Fatal(err)
		}
		opened := time.Since(start)
		h := sha256.New()
		size := new(counter)
		offered, err := WriteTar(io.MultiWriter(h, size), python, files)
		closeAll(files)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d wheels opened in %v, tar of %d bytes in %v more", len(files), opened, *size, time.Since(start)-opened)
		h.Sum(sums[i][:0])
		for _, d := range offered {
			if len(d.Imports) == 0 {
				t.Errorf("nothing can be imported of %s", d.Name)
			}
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("the tar has the sha256 %x, then %x", sums[0], sums[1])
	}
}

// counter counts bytes.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
