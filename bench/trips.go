package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// timedCalls prints the milliseconds of each of so many calls of the tool echo, as JSON.
const timedCalls = `
import json, time
call, clock, took = mcp_shop.echo, time.perf_counter, []
assert call(text="x") == "x"
for _ in range(%d):
    begin = clock()
    call(text="x")
    took.append((clock() - begin) * 1000)
print(json.dumps(took))
`

// awaitedCalls is that with await.
const awaitedCalls = `
import json, time
call, clock, took = mcp_shop.echo, time.perf_counter, []
assert await call(text="x") == "x"
for _ in range(%d):
    begin = clock()
    await call(text="x")
    took.append((clock() - begin) * 1000)
print(json.dumps(took))
`

// roundTrips is part e: a tool call from the code through the wall to a server and back, by the code's own clock, beside the same
// call of the same server by a client without bridge and wall.
func (s *suite) roundTrips(ctx context.Context) error {
	var plain, awaited, ruled, bare series
	err := s.withShop(ctx, func(c, direct *client) (err error) {
		g, err := s.govern(ctx, map[string]server{"shop": s.shop()})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, g.close("call", len(ruled.values))) }()
		for range s.scale.roundTrips {
			if ctx.Err() != nil {
				break
			}
			_ = timed(ctx, c, fmt.Sprintf(timedCalls, perTurn), &plain)     // counted
			_ = timed(ctx, c, fmt.Sprintf(awaitedCalls, perTurn), &awaited) // counted
			_ = timed(ctx, g.client, fmt.Sprintf(timedCalls, perTurn), &ruled)
			for range perTurn {
				bare.took(echo(ctx, direct))
			}
		}
		return nil
	})
	s.report.figure("e", "tool call from the code, mcp_shop.echo(…)", false, "ms", plain)
	s.report.figure("e", "tool call from the code, await mcp_shop.echo(…)", false, "ms", awaited)
	s.report.figure("e", "the first of these with MCP_BRIDGE_AUDIT and MCP_BRIDGE_POLICY", false, "ms", ruled)
	s.report.figure("e", "the same call by a bare client on the host", true, "ms", bare)
	s.report.cost("e", "code, container's wall and bridge, in a tool call", differenceOfMedians(plain.values, bare.values))
	s.report.cost("e", "a policy and a record, in a tool call", differenceOfMedians(ruled.values, plain.values))
	s.report.verdict("e", "tool call ≤ 0.6 ms above the bare client's, p50", median(plain.values)-median(bare.values), "ms", 0.6)
	return err
}

// withShop gives a warm bridge that has the shop, and a client of a shop of its own with no bridge between, and ends both.
func (s *suite) withShop(ctx context.Context, measure func(bridge, direct *client) error) (err error) {
	c, err := s.warm(ctx, map[string]server{"shop": s.shop()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	direct, err := s.host(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, direct.close()) }()
	return measure(c, direct)
}

// timed runs code that prints the milliseconds of what it has done, as a JSON array. A call that fails in it is a run that fails; to
// has counted it when it is returned.
func timed(ctx context.Context, c *client, code string, to *series) error {
	out, _, err := c.python(ctx, code, "", only("shop"))
	var took []float64
	if err == nil {
		err = json.Unmarshal([]byte(out), &took)
	}
	if err != nil {
		to.fail(err)
		return err
	}
	to.values = append(to.values, took...)
	return nil
}

func echo(ctx context.Context, c *client) (time.Duration, error) {
	begin := time.Now()
	got, err := c.tool(ctx, "echo", map[string]any{"text": "x"})
	took := time.Since(begin)
	if err == nil && got != "x" {
		err = fmt.Errorf("echo answered %q", got)
	}
	return took, err
}

const (
	together = 50 // calls at once
	slowTool = 100 * time.Millisecond
)

// gatherCode prints the milliseconds of the gather as the code sees it.
const gatherCode = `
import asyncio, json, time
begin = time.perf_counter()
got = await asyncio.gather(*(mcp_shop.wait(ms=%d) for _ in range(%d)))
took = (time.perf_counter() - begin) * 1000
assert len(got) == %[2]d
print(json.dumps([took]))
`

// gathers is part f: fifty calls at once of a tool that takes 100 ms.
func (s *suite) gathers(ctx context.Context) error {
	code := fmt.Sprintf(gatherCode, slowTool.Milliseconds(), together)
	var whole, inside, bare series
	err := s.withShop(ctx, func(c, direct *client) error {
		if _, _, err := c.python(ctx, code, "", only("shop")); err != nil { // starts the server
			return err
		}
		for range s.scale.gathers {
			if !sleep(ctx, pause) {
				break
			}
			begin := time.Now()
			err := timed(ctx, c, code, &inside)
			whole.took(time.Since(begin), err)
			bare.took(waitTogether(ctx, direct))
		}
		return nil
	})
	s.report.figure("f", "gather of 50 calls of a 100 ms tool, by the code's clock", false, "ms", inside)
	s.report.figure("f", "the whole run_python of it", false, "ms", whole)
	s.report.figure("f", "the same 50 calls at once by a bare client on the host", true, "ms", bare)
	s.report.verdict("f", "gather of 50 ≤ 160 ms, the whole run_python, p50", median(whole.values), "ms", 160)
	return err
}

func waitTogether(ctx context.Context, c *client) (time.Duration, error) {
	errs := make([]error, together)
	var all sync.WaitGroup
	begin := time.Now()
	for i := range errs {
		all.Go(func() { _, errs[i] = c.tool(ctx, "wait", map[string]any{"ms": slowTool.Milliseconds()}) })
	}
	all.Wait()
	return time.Since(begin), errors.Join(errs...)
}
