//go:build !unix

package image

import "os/exec"

// There is no mmdebstrap where there are no process groups.
func inGroup(*exec.Cmd) {}

func killGroup(int) {}
