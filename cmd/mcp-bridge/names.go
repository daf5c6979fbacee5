package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// farthest is how many letters of a command's name may be wrong for it to be named as the one that was meant.
const farthest = 2

// unknownCommand says that a command has no such command of its own, and which one was meant, or where they are told.
func unknownCommand(cmd *cobra.Command, wrong string) error {
	next := fmt.Sprintf("%s --help lists them", cmd.CommandPath())
	if near := nearCommands(cmd, wrong); len(near) > 0 {
		next = fmt.Sprintf("did you mean %s?", strings.Join(near, " or "))
	}
	return fmt.Errorf("there is no command %q of %s; %s", wrong, cmd.CommandPath(), next)
}

// nearCommands are the nearest names, or those that begin with wrong.
func nearCommands(cmd *cobra.Command, wrong string) []string {
	if wrong == "" { // with which all begin
		return nil
	}
	for cmd.SuggestionsMinimumDistance = 1; cmd.SuggestionsMinimumDistance <= farthest; cmd.SuggestionsMinimumDistance++ {
		if near := cmd.SuggestionsFor(wrong); len(near) > 0 {
			return near
		}
	}
	return nil
}

// strictHelp makes help of what there isn't an error: cobra's own prints the general help, as if that had been asked for.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		show := help.Run
		help.RunE = func(cmd *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil {
				return usageError{err}
			}
			if len(rest) > 0 {
				return usageError{unknownCommand(found, rest[0])}
			}
			show(cmd, args)
			return nil
		}
	}
}
