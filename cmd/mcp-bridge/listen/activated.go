package listen

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
)

// bySystemd is the address that stands for the socket which systemd hands over.
const bySystemd = "systemd"

// firstHanded is the descriptor of the first socket that is handed over (sd_listen_fds(3)).
const firstHanded = 3

// activated returns the socket that systemd listens on for this process. What says so leaves the
// environment: no program that the bridge starts is meant.
func activated() (net.Listener, error) {
	pid, pidErr := strconv.Atoi(os.Getenv("LISTEN_PID"))
	n, numberErr := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name)
	}
	switch {
	case pidErr != nil || numberErr != nil || pid != os.Getpid():
		return nil, errors.New("--http=systemd: no socket was handed over; start the bridge by its socket unit " +
			"(docs/http.md), or name an address")
	case n != 1:
		return nil, fmt.Errorf("--http=systemd: %d sockets were handed over, and one is served; have a single "+
			"ListenStream in the socket unit", n)
	}
	file := os.NewFile(firstHanded, "the socket of systemd")
	defer file.Close() // FileListener has its own
	socket, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("--http=systemd: what was handed over can't be listened on: %w", err)
	}
	return socket, nil
}
