package docker

import (
	"net/http"
	"testing"
)

// TestRemovalUnderWay: an engine that is removing the container already is waited for.
func TestRemovalUnderWay(t *testing.T) {
	f := newFake()
	f.instant, f.forgets = true, true
	d := New(Config{Endpoint: f.listen(t)})
	defer d.Close()
	f.names["here"] = &fakeContainer{dead: make(chan struct{})}
	f.answer = map[string]reply{"DELETE here": {http.StatusConflict,
		map[string]string{"message": "removal is already in progress"}}}
	f.names["here"].die()
	if err := d.Remove(t.Context(), "here"); err != nil {
		t.Error(err)
	}
	if left := f.left(); len(left) > 0 {
		t.Errorf("it returned before the removal: %v", left)
	}
}
