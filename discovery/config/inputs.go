package config

import (
	"slices"
	"strings"
)

// Input is what VS Code asks its user for when it starts a server, and keeps where nothing else can
// read it. Entries name it as ${input:ID}.
type Input struct {
	ID, Description string
	Options         []string // of which one is chosen; nil: any text
	Command         bool     // a command of VS Code's makes the value
}

// maxInputs bounds how many are read from one file.
const maxInputs = 100

// Inputs returns the inputs of a file of VS Code's. What is no input is left out.
func Inputs(root Object) (all []Input) {
	list, _ := root.Get("inputs").Array()
	for _, v := range list[:min(len(list), maxInputs)] {
		o, _ := v.Object()
		in := Input{ID: o.Text("id"), Description: o.Text("description"), Command: o.Text("type") == "command"}
		options, _ := o.Get("options").Array()
		for _, option := range options {
			word, ok := option.Text()
			if labelled, isObject := option.Object(); isObject {
				word, ok = labelled.Get("value").Text()
			}
			if ok {
				in.Options = append(in.Options, word)
			}
		}
		if in.ID != "" {
			all = append(all, in)
		}
	}
	return all
}

// input returns the reference to the secret that an input becomes. Inputs are of a host's file, so
// that two of its servers may have one.
func (m *mover) input(part, id string) string {
	i := slices.IndexFunc(m.inputs, func(in Input) bool { return in.ID == id })
	about := "the input " + Display(id)
	if i >= 0 {
		if in := m.inputs[i]; in.Command {
			m.refuse("its "+part+" asks for an input that a command of "+m.entry.Source.Host+" makes",
				"move it by hand")
		} else {
			if in.Description != "" {
				about = in.Description
			}
			if in.Options != nil {
				about += " (one of " + strings.Join(in.Options, ", ") + ")"
			}
		}
	}
	return m.secret(part, m.entry.Source.Host+"."+id, about, "")
}
