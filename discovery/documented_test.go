package discovery

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocumented: hosts that were not run, from files as their documentation has them.
func TestDocumented(t *testing.T) {
	for _, host := range []string{"kilo-code", "qwen-code", "factory-droid"} {
		t.Run(host, func(t *testing.T) {
			golden := "testdata/" + host + ".golden"
			got := full(Scan(os.DirFS("testdata/"+host), linux("KEY=secret-key")))
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("catalog (-want +got), -update rewrites it:\n%s", d)
			}
		})
	}
}
