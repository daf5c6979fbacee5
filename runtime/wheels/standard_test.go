package wheels

import (
	"slices"
	"testing"
)

func TestIsStandard(t *testing.T) {
	if !slices.IsSorted(standard) {
		t.Error("the list is not in order")
	}
	for name, want := range map[string]bool{"json": true, "AsyncIO": true, "concurrent": true, "zoneinfo": true,
		"importlib": true, "pandas": false, "importlib-metadata": false, "": false, "xml": true} {
		if IsStandard(name) != want {
			t.Errorf("%q: got %v", name, !want)
		}
	}
}
