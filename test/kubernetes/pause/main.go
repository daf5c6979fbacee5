package main

import (
	"os"
	"os/signal"
	"syscall"
)

// The process that holds a pod's namespaces.
func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
}
