package main

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// item is one thing of the lock-down, and the container without it. Such containers are made here and nowhere in the bridge, which can't
// be told to leave any of them out.
type item struct {
	name    string
	without func(container) container
}

// shared is a namespace that a container has not of its own.
func shared(field string) func(container) container {
	return func(c container) container { return c.with(field, map[string]any{"nsmode": "host"}) }
}

func lacking(fields ...string) func(container) container {
	return func(c container) container { return c.without(fields...) }
}

func set(field string, value any) func(container) container {
	return func(c container) container { return c.with(field, value) }
}

// The namespaces of mounts and of IPC aren't among them: podman makes no container without the former, and the latter takes a
// /dev/mqueue of the machine's.
var items = []item{
	{"the strict seccomp profile, for podman's own", lacking("seccomp_profile_path")},
	{"any seccomp profile of the engine", set("seccomp_profile_path", "unconfined")},
	{"capabilities dropped", lacking("cap_drop")},
	// Without it the engine drops capabilities when the filter is already there, and ours has no capset.
	{"no-new-privileges, and the strict profile, which needs it", lacking("no_new_privileges", "seccomp_profile_path")},
	{"the read-only root", lacking("read_only_filesystem")},
	{"the four small tmpfs, for the image's own directories", func(c container) container {
		return c.without("mounts", "read_only_filesystem")
	}},
	{"a user that isn't root", lacking("user")},
	{"a user namespace of its own", func(c container) container { return shared("userns")(c.without("idmappings")) }},
	{"a network namespace of its own", shared("netns")},
	{"a process namespace of its own", shared("pidns")},
	{"a cgroup namespace of its own", shared("cgroupns")},
	{"a UTS namespace of its own", func(c container) container { return shared("utsns")(c.without("hostname")) }},
	{"masked paths of our own", lacking("mask")},
	{"rlimits", lacking("r_limits")},
	{"podman's own clock", lacking("timeout")},
}

// wholeStarts is how often a round starts a container with all items.
const wholeStarts = 3

// lockDown is part j: from asking for a container until its guest is ready, with all items of the lock-down and with one item
// removed at a time, in turns and in a new order each time. What an item costs is looked for within each round: from one to the next the
// machine's speed changes by more than that.
func (s *suite) lockDown(ctx context.Context) error {
	if err := s.readyEngine(ctx); err != nil {
		return err
	}
	variants := []container{s.container}
	for _, i := range items {
		variants = append(variants, i.without(s.container))
	}
	ready := make([]series, len(variants))
	costs := make([][]float64, len(variants))
	for round := range s.scale.items {
		of := s.startAll(ctx, variants)
		if ctx.Err() != nil {
			break
		}
		for i := range variants {
			ready[i].join(of[i])
			if d := median(of[0].values) - median(of[i].values); !math.IsNaN(d) {
				costs[i] = append(costs[i], d)
			}
		}
		if (round+1)%10 == 0 {
			s.say("(j) %d of %d rounds", round+1, s.scale.items)
		}
	}
	s.report.figure("j", "container asked for → guest ready, everything locked down", false, "ms", ready[0])
	for i, item := range items {
		s.report.figure("j", "without "+item.name, true, "ms", ready[i+1])
		s.report.cost("j", item.name, medianDifference(costs[i+1]))
	}
	return nil
}

// startAll is one round: each of the containers once, the first, which has all items, wholeStarts times.
func (s *suite) startAll(ctx context.Context, variants []container) []series {
	order := rand.Perm(len(variants) + wholeStarts - 1)
	ready := make([]series, len(variants))
	for _, i := range order {
		if i >= len(variants) {
			i = 0
		}
		if ctx.Err() == nil {
			s.startOnce(ctx, variants[i], &ready[i])
		}
	}
	return ready
}

func (s *suite) startOnce(ctx context.Context, c container, to *series) {
	begin := time.Now()
	g, err := s.engine.launch(ctx, c, s.source)
	took := time.Since(begin)
	if err == nil {
		err = g.end(ctx)
	}
	to.took(took, err)
}
