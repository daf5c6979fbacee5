package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// attack is one piece of hostile code and what was hoped to hold it.
type attack struct {
	name, hoped string
	timeout     time.Duration
	code        string
}

func attacks() []attack {
	return []attack{
		{"hoards memory", "nothing: there is no limit to set, the heap is the bridge's own", 10 * time.Second,
			"hoard = []\nwhile True:\n    hoard.append('x' * (1 << 28) + str(len(hoard)))\n"},
		{"reads one long number", "after its timeout of 0.3 s the interpreter is told to stop, and looks between " +
			"two steps", 300 * time.Millisecond, "print(int('7' * 2000000) % 10)\n"},
		{"reads the bridge's secrets", "the one way to a file begins in the directory of notes", time.Second,
			"name = '../' * 30 + 'proc/self/environ'\n" +
				"print([v for v in read_note(name).split('\\0') if 'TOKEN' in v])\n"},
		{"is ordinary Python", "it looks like Python", time.Second,
			"import json\nprint(json.dumps({'a': 1}))\n"},
	}
}

// demoToken is made up. A real bridge has its servers' tokens in its environment.
const demoToken = "ACME_TOKEN=made-up-for-this-demo"

// memory bounds each bridge of the demo, so that it harms nothing but itself: 4 GB of address
// space.
const memory = "ulimit -v 4000000; exec \"$0\" \"$@\""

func main() {
	if len(os.Args) == 2 {
		serve(os.Args[1])
		return
	}
	if err := demo(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// demo runs each attack against a bridge of its own.
func demo() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	notes, err := os.MkdirTemp("", "notes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(notes)
	for _, a := range attacks() {
		fmt.Printf("\ncode that %s\n  hoped:      %s\n", a.name, a.hoped)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		cmd := exec.CommandContext(ctx, "sh", "-c", memory, self, a.name)
		cmd.Env = append(os.Environ(), demoToken, "NOTES="+notes)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		err := cmd.Run()
		cancel()
		report(said.String(), err)
	}
	return nil
}

// report prints what a bridge said: its own lines whole, of a crash only the first.
func report(said string, err error) {
	for line := range strings.Lines(said) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "fatal error:") ||
			strings.HasPrefix(line, "runtime: goroutine stack") {
			fmt.Println("  " + strings.TrimSpace(line))
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		fmt.Printf("  the bridge: dead, %v; its other client never got its answer\n", exit)
	} else if err != nil {
		fmt.Println("  the bridge:", err)
	}
}

// serve is one bridge with two clients: one sends the attack, the other an innocent piece of code
// at the same time, whose tool answers once the attack is over.
func serve(name string) {
	over := make(chan struct{})
	p := &prototype{notes: os.Getenv("NOTES"), tool: func(context.Context) (int, error) {
		<-over
		return 42, nil
	}}
	innocent := make(chan string)
	go func() {
		printed, err := p.run(context.Background(), "print(call_tool())")
		innocent <- fmt.Sprintf("  neighbour:  %s(error: %v)", printed, err)
	}()
	for _, a := range attacks() {
		if a.name != name {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), a.timeout)
		begun := time.Now()
		printed, err := p.run(ctx, a.code)
		took := time.Since(begun)
		cancel()
		if printed != "" {
			fmt.Printf("  it printed: %s", printed)
		}
		fmt.Printf("  it ended:   after %.1f s, error: %v\n", took.Seconds(), err)
	}
	close(over)
	fmt.Println(strings.ReplaceAll(<-innocent, "\n", " "))
}
