package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestNoMix: 500 clients at once, of all kinds and with the same ids, each get their own answers.
// In short mode they are 100.
func TestNoMix(t *testing.T) {
	s := serve(t, echo, nil)
	clients, calls := 500, 20
	if testing.Short() {
		clients = 100
	}
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			headers, meta := standard("tools/call", "run_python"), metaOf("")
			if c%2 == 0 {
				headers, meta = s.initialize(latest, `{}`), ""
			}
			for n := range calls {
				code := fmt.Sprintf("client %d call %d.", c, n)
				status, got, _ := s.post(run(n, code, meta), headers...)
				if status != http.StatusOK || len(got) != 1 || string(got[0].ID) != fmt.Sprint(n) ||
					!strings.Contains(got[0].text(), code) {
					t.Errorf("%s: %d %+v", code, status, got)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestProgressComesFirst: of 1,000 calls each has its progress before its answer, and nothing
// after.
func TestProgressComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, end := bubble(t, func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
			r.Output(sandbox.Chunk{Stream: "stdout", Text: "news of " + r.Code + "\n"})
			time.Sleep(60 * time.Millisecond) // of the bubble; news are told after 50 ms
			return printed(r.Code), nil
		})
		var all sync.WaitGroup
		for c := range 50 {
			all.Go(func() {
				headers, meta := standard("tools/call", "run_python"), metaOf(`"progressToken":"p",`)
				if c%2 == 0 {
					headers, meta = s.initialize(latest, `{}`), `{"progressToken":"p"}`
				}
				for n := range 20 {
					code := fmt.Sprintf("%d/%d.", c, n)
					_, got, _ := s.post(run(n, code, meta), headers...)
					if len(got) != 2 || got[0].Method != "notifications/progress" ||
						!strings.Contains(string(got[0].Params), "news of "+code) || !strings.Contains(got[1].text(), code) {
						t.Errorf("%s: %+v", code, got)
					}
				}
			})
		}
		all.Wait()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
