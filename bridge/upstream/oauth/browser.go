package oauth

import (
	"os"
	"os/exec"
	"runtime"
)

// Browser returns a function that opens pages, or nil if there is no browser to open them in.
func Browser() func(page string) {
	command := []string{"xdg-open"}
	switch runtime.GOOS {
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
		if cmd.Start() == nil {
			go func() { _ = cmd.Wait() }() // it may become the user's browser, so it isn't ended
		}
	}
}
