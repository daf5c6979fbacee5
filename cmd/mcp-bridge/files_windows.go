package main

// openFiles is how many descriptors a process in a container may have.
func openFiles() int64 { return noFile }
