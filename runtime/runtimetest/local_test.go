package runtimetest

import "testing"

func TestLocal(t *testing.T) {
	Behaviour(t, func(*testing.T) Target { return Target{Driver: Local{}, Image: "any"} })
}
