package runtimetest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// labelLayers marks the images that Layers makes.
const labelLayers = "io.mcp-bridge.test-layer"

// Layers checks what every driver that has an engine promises of AddLayer and of the images that it
// makes.
func Layers(t *testing.T, newTarget func(*testing.T) Target) {
	g := newTarget(t)
	ref := "localhost/mcp-bridge/test-" + strings.ToLower(rand.Text()) + ":latest"
	base, ok, err := g.Driver.FindImage(t.Context(), g.Image)
	if err != nil || !ok {
		t.Fatalf("there is no image %s: %v", g.Image, err)
	}
	layer := func(base, content string) runtime.Layer {
		return runtime.Layer{Base: base, Ref: ref, Owner: g.Owner, Tar: bytes.NewReader(layerTar(content)),
			Labels: map[string]string{labelLayers: ref, labelLayers + ".said": content}}
	}
	t.Cleanup(func() { g.clearImages(t, ref) })
	for _, l := range layers {
		t.Run(l.name, func(t *testing.T) {
			l.test(t, g, base.ID, layer)
			g.clearImages(t, ref)
			if g.Count != nil && g.Count() != 0 {
				t.Errorf("%d containers are left", g.Count())
			}
		})
	}
}

// layerTar makes a layer as environments have it.
func layerTar(content string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	then := time.Unix(315532800, 0)
	for _, dir := range []string{"opt/", "opt/env/"} {
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: then}) // to memory
	}
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "opt/env/said.txt", Mode: 0o644, ModTime: then,
		Size: int64(len(content))})
	_, _ = io.WriteString(w, content)
	_ = w.Close()
	return b.Bytes()
}

// images returns those that a run of Layers has made and that are there.
func (g Target) images(t *testing.T, ref string) []runtime.ListedImage {
	t.Helper()
	all, err := g.Driver.ListImages(t.Context(), labelLayers)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(i runtime.ListedImage) bool { return i.Labels[labelLayers] != ref })
}

func (g Target) clearImages(t *testing.T, ref string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	all, err := g.Driver.ListImages(ctx, labelLayers)
	for _, i := range all {
		if i.Labels[labelLayers] == ref {
			err = errors.Join(err, g.Driver.RemoveImage(ctx, i.ID))
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// looks prints what a container of an image sees of the layer, and what it can do to it.
const looks = `
import errno, os
s = os.stat("/opt/env/said.txt")
d = os.stat("/opt/env")
print(open("/opt/env/said.txt").read(), s.st_uid, s.st_gid, oct(s.st_mode), int(s.st_mtime), oct(d.st_mode))
try:
    open("/opt/env/more", "w")
    print("written")
except OSError as e: # Linux looks at the mount first, gVisor at the directory's mode
    print("refused" if e.errno in (errno.EROFS, errno.EACCES) else e)
`

type layerTest struct {
	name string
	test func(t *testing.T, g Target, base string, layer func(base, content string) runtime.Layer)
}

var layers = []layerTest{
	{"an image has the files and the labels", func(t *testing.T, g Target, base string,
		layer func(base, content string) runtime.Layer) {
		made, err := g.Driver.AddLayer(t.Context(), layer(base, "hello \"x\" $y\\"))
		if err != nil {
			t.Fatal(err)
		}
		found, has, err := g.Driver.FindImage(t.Context(), made.Ref)
		if err != nil || !has || found.ID != made.ID || made.ID == base {
			t.Errorf("made is %+v; its name finds %+v, %v, %v", made, found, has, err)
		}
		list := g.images(t, made.Ref)
		if len(list) != 1 || list[0].ID != made.ID || !slices.Equal(list[0].Names, []string{made.Ref}) ||
			list[0].Labels[labelLayers+".said"] != "hello \"x\" $y\\" {
			t.Fatalf("listed is %+v, made was %+v", list, made)
		}
		if o, is := runtime.OwnerOf(list[0].Labels); is {
			t.Errorf("a container of the image would be taken for one of %+v", o)
		}
		s := g.Spec(looks)
		s.Image = made.ID
		const want = "hello \"x\" $y\\ 0 0 0o100644 315532800 0o40755\nrefused\n"
		if exit, out, errs := g.run(t, s); exit.Code != 0 || out != want {
			t.Errorf("a container sees %q, code %d, stderr %q", out, exit.Code, errs)
		}
	}},
	{"a name goes to the later image, and images are removed", func(t *testing.T, g Target, base string,
		layer func(base, content string) runtime.Layer) {
		first, err := g.Driver.AddLayer(t.Context(), layer(base, "first"))
		if err != nil {
			t.Fatal(err)
		}
		second, err := g.Driver.AddLayer(t.Context(), layer(base, "second"))
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range g.images(t, first.Ref) {
			if i.ID == first.ID && len(i.Names) > 0 || i.ID == second.ID && len(i.Names) != 1 {
				t.Errorf("listed is %+v", i)
			}
		}
		for range 2 {
			if err := g.Driver.RemoveImage(t.Context(), first.ID); err != nil {
				t.Error(err)
			}
		}
		if list := g.images(t, first.Ref); len(list) != 1 || list[0].ID != second.ID {
			t.Errorf("left are %+v", list)
		}
		if _, has, err := g.Driver.FindImage(t.Context(), base); err != nil || !has {
			t.Errorf("the base is gone: %v", err)
		}
	}},
	{"no image is made of half a layer", func(t *testing.T, g Target, base string,
		layer func(base, content string) runtime.Layer) {
		cut := layer(base, "cut")
		cut.Tar = io.MultiReader(io.LimitReader(cut.Tar, 1700), failing{})
		if i, err := g.Driver.AddLayer(t.Context(), cut); err == nil {
			t.Errorf("made %+v", i)
		}
		ctx, cancel := context.WithCancel(t.Context())
		slow := layer(base, "slow")
		slow.Tar = io.MultiReader(io.LimitReader(slow.Tar, 1700), readerFunc(func([]byte) (int, error) {
			cancel()
			<-ctx.Done()
			return 0, ctx.Err()
		}))
		if i, err := g.Driver.AddLayer(ctx, slow); !errors.Is(err, context.Canceled) {
			t.Errorf("made %+v, %v", i, err)
		}
		if list := g.images(t, cut.Ref); len(list) > 0 {
			t.Errorf("there is %+v", list)
		}
	}},
	{"a missing base is an image error", func(t *testing.T, g Target, _ string,
		layer func(base, content string) runtime.Layer) {
		_, err := g.Driver.AddLayer(t.Context(), layer("sha256:"+strings.Repeat("1", 64), "x"))
		if !errors.As(err, new(*runtime.ImageError)) {
			t.Errorf("got %v", err)
		}
	}},
	{"an image in use stays", func(t *testing.T, g Target, base string,
		layer func(base, content string) runtime.Layer) {
		made, err := g.Driver.AddLayer(t.Context(), layer(base, "used"))
		if err != nil {
			t.Fatal(err)
		}
		in, end := io.Pipe()
		s := g.Spec("print('up', flush=True); input()")
		s.Image = made.ID
		out := writerFunc(func([]byte) {
			if err := g.Driver.RemoveImage(t.Context(), made.ID); err == nil {
				t.Error("it was removed")
			}
			end.Close()
		})
		std := runtime.Stdio{Stdin: in, Stdout: out, Stderr: io.Discard}
		if _, err := g.Driver.Run(t.Context(), s, std); err != nil {
			t.Error(err)
		}
	}},
	{"an image is saved", func(t *testing.T, g Target, base string,
		layer func(base, content string) runtime.Layer) {
		made, err := g.Driver.AddLayer(t.Context(), layer(base, "saved"))
		if err != nil {
			t.Fatal(err)
		}
		r, w := io.Pipe()
		go func() { w.CloseWithError(g.Driver.SaveImage(t.Context(), made.Ref, w)) }()
		var names []string
		said := "" // the files that name images
		for files := tar.NewReader(r); ; {
			h, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, h.Name)
			if h.Name == "index.json" || h.Name == "manifest.json" || h.Name == "repositories" {
				text, err := io.ReadAll(files)
				if err != nil {
					t.Fatal(err)
				}
				said += string(text)
			}
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Error(err)
		}
		if !slices.Contains(names, "oci-layout") && !slices.Contains(names, "manifest.json") {
			t.Errorf("the archive has %q", names)
		}
		if !strings.Contains(said, made.Ref) {
			t.Errorf("the archive doesn't name %s: %s", made.Ref, said)
		}
	}},
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is broken") }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
