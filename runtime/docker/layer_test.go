package docker

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestLayerRequests: what the engine is asked for a layer. The container has the labels of the
// image and of its owner; the commit empties the latter, and leaves the former.
func TestLayerRequests(t *testing.T) {
	alone(t)
	f := newFake()
	f.answer = map[string]reply{"PUT archive": {http.StatusOK, nil},
		"POST commit": {http.StatusCreated, map[string]string{"Id": "sha256:1234"}}}
	d := New(Config{Endpoint: f.listen(t)})
	defer d.Close()
	owner := runtime.Self()
	made, err := d.AddLayer(t.Context(), runtime.Layer{Base: "sha256:base", Ref: "localhost/made:latest",
		Labels: map[string]string{"name": "x"}, Owner: owner, Tar: strings.NewReader("content")})
	if err != nil || made.ID != "sha256:1234" || made.Ref != "localhost/made:latest" {
		t.Errorf("got %+v, %v", made, err)
	}
	var created, committed struct {
		Image      string
		Labels     map[string]string
		HostConfig struct{ NetworkMode string }
	}
	for name, into := range map[string]any{"create": &created, "commit": &committed} {
		if err := json.Unmarshal([]byte(f.bodies[name]), into); err != nil {
			t.Fatal(err)
		}
	}
	want := owner.Labels()
	want["name"] = "x"
	if diff := cmp.Diff(want, created.Labels); diff != "" || created.Image != "sha256:base" ||
		created.HostConfig.NetworkMode != "none" {
		t.Errorf("created is %+v; labels (-want +got):\n%s", created, diff)
	}
	for name := range owner.Labels() {
		if v, is := committed.Labels[name]; v != "" || !is {
			t.Errorf("committed with %s=%q, %v", name, v, is)
		}
	}
	if f.bodies["archive"] != "content" || len(f.left()) > 0 {
		t.Errorf("copied is %q; %q are left", f.bodies["archive"], f.left())
	}
}

// TestListImages leaves out the name that older versions give an image without any.
func TestListImages(t *testing.T) {
	alone(t)
	f := newFake()
	d := New(Config{Endpoint: f.listen(t)})
	defer d.Close()
	if _, err := d.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.answer = map[string]reply{"GET json": {http.StatusOK, []map[string]any{
		{"Id": "sha256:1", "RepoTags": []string{"<none>:<none>"}, "Labels": map[string]string{"l": "x"}},
		{"Id": "sha256:2", "RepoTags": []string{"localhost/made:latest"}},
	}}}
	all, err := d.ListImages(t.Context(), "l")
	if err != nil || len(all) != 2 || len(all[0].Names) != 0 || all[0].Labels["l"] != "x" ||
		len(all[1].Names) != 1 {
		t.Errorf("got %+v, %v", all, err)
	}
}
