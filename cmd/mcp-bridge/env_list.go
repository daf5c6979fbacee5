package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
)

// environmentJSON describes an environment to a program.
type environmentJSON struct {
	Name     string            `json:"name"`
	State    string            `json:"state"`
	Why      string            `json:"why,omitempty"`
	Image    string            `json:"image,omitempty"`
	Layer    string            `json:"layer,omitempty"`
	Bytes    int64             `json:"bytes,omitempty"`
	Built    *time.Time        `json:"built,omitempty"`
	Python   string            `json:"python,omitempty"`
	Packages map[string]string `json:"packages,omitempty"`
	File     string            `json:"file,omitempty"`
}

// States of an environment.
const (
	stateBuilt    = "built"
	stateOutdated = "outdated" // it can be used all the same
	stateNotBuilt = "not built"
	stateBroken   = "broken" // its settings can't be read
)

// envRows returns all environments that are built or defined, by name.
func envRows(built []environments.Environment, known []environments.Definition) (rows []environmentJSON) {
	of := map[string]environments.Environment{}
	for _, env := range built {
		of[env.Name] = env
		named := func(d environments.Definition) bool { return d.Name == env.Name }
		if !slices.ContainsFunc(known, named) {
			known = append(known, environments.Definition{Name: env.Name})
		}
	}
	for _, d := range known {
		r := environmentJSON{Name: d.Name, State: stateNotBuilt, File: d.File}
		if env, is := of[d.Name]; is {
			r.State, r.Why, r.Image, r.Layer, r.Bytes, r.Built = stateBuilt, env.Outdated, env.Image.ID, env.Layer,
				env.Size, &env.Built
			r.Python, r.Packages = env.Interpreter.String(), map[string]string{}
			for _, p := range env.Distributions {
				r.Packages[p.Name] = p.Version
			}
			if env.Outdated != "" {
				r.State = stateOutdated
			}
		}
		if d.Err != nil {
			r.State, r.Why = stateBroken, d.Err.Error()
		}
		rows = append(rows, r)
	}
	return rows
}

func (a *app) envList(ctx context.Context, p *parts, asJSON bool) error {
	e := p.environments()
	built, err := e.List(ctx)
	if err != nil {
		return err
	}
	rows := envRows(built, e.Definitions())
	if asJSON {
		return printJSON(a.stdout, rows)
	}
	table := [][]string{{"NAME", "STATE", "SIZE", "AGE", "PACKAGES", "LAYER"}}
	for _, r := range rows {
		row := []string{r.Name, r.State, "", "", "", ""}
		if r.Image != "" {
			row = []string{r.Name, r.State, units.HumanSize(float64(r.Bytes)), age(*r.Built, time.Now()),
				strconv.Itoa(len(r.Packages)), short(r.Layer)}
		}
		table = append(table, row)
	}
	s := a.stdout.Screen()
	s.Table(terminal.Table{Rows: table, Spare: 5, Word: 1})
	for _, r := range rows {
		switch {
		case r.State == stateOutdated:
			s.Lines(0, 2, fmt.Sprintf("%s: %s; next: mcp-bridge env build %s", r.Name, r.Why, r.Name))
		case r.Why != "":
			s.Lines(0, 2, fmt.Sprintf("%s: %s", r.Name, r.Why))
		}
	}
	return nil
}

// short returns enough of a digest to tell it from others.
func short(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(len(digest), 12)]
}

// environmentLine describes an environment that is built, in one line.
func environmentLine(env environments.Environment, now time.Time) string {
	return fmt.Sprintf("%s, %s, %d packages, %s, layer %s", env.Image.Ref, units.HumanSize(float64(env.Size)),
		len(env.Distributions), age(env.Built, now), short(env.Layer))
}
