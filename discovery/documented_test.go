package discovery

import (
	"os"
	"testing"
)

// TestDocumented: hosts from files as their documentation has them, each in a directory of testdata
// with a home directory and a project.
func TestDocumented(t *testing.T) {
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, e := range entries {
		if e.IsDir() {
			tried++
			t.Run(e.Name(), func(t *testing.T) {
				golden(t, e.Name(), full(Scan(os.DirFS("testdata/"+e.Name()), linux("KEY=secret-key"))))
			})
		}
	}
	if tried < 3 {
		t.Errorf("%d hosts", tried)
	}
}
