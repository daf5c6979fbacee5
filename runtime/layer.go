package runtime

import "io"

// Layer has files that are put onto an image, which makes another image.
type Layer struct {
	Base   string            // id of the image that they are put onto
	Ref    string            // name of the new image; an older image of that name loses it
	Labels map[string]string // of the new image, beside the base's
	Owner  Owner             // of the container that it is made in, which is never started
	Tar    io.Reader         // the files, by their paths below /
}

// ListedImage is one of an engine's images.
type ListedImage struct {
	ID     string   // "sha256:…"
	Names  []string // none for one whose names went to a later image
	Labels map[string]string
}
