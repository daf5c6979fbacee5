package main

import (
	"io"
	"os"
	"os/exec"
	goruntime "runtime"
)

// browser opens pages; nil where there is nothing that could.
func browser() func(page string) {
	command := []string{"xdg-open"}
	switch goruntime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return nil
		}
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil
	}
	return func(page string) {
		cmd := exec.Command(path, append(command[1:], page)...)
		cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
		if cmd.Start() == nil {
			go func() { _ = cmd.Wait() }() // it may become the browser itself, and is the user's: it isn't waited for
		}
	}
}
