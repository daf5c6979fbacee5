//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said are the arguments of the fake's tool "progress".
func said(t *testing.T, times int, params ...string) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"said": params, "times": times})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestProgress(t *testing.T) {
	p := open(t, nil, fake("normal"))
	long := strings.Repeat("é", MaxProgressText)
	var got []string
	ctx := WithProgress(t.Context(), func(r Progress) {
		total := "-"
		if r.Total != nil {
			total = fmt.Sprint(*r.Total)
		}
		got = append(got, fmt.Sprintf("%v/%s %s", r.Progress, total, r.Message))
	})
	_, err := p.Call(ctx, "fake", "progress", said(t, 1,
		`,"progress":1,"total":4,"message":"first"`,
		`,"progress":0.5`,
		// These are no reports.
		`,"message":"no number"`, `,"progress":"3"`, `,"progress":null`, `,"progress":[]`, `,"progress":1e999`,
		`,"progress":3,"message":7`,
		`,"progress":9,"progressToken":"b-1000000"`, `,"progress":9,"progressToken":{}`,
		`,"progress":2,"total":null,"message":"key s3cr3t-value"`,
		`,"progress":3,"message":"`+long+`"`))
	if err != nil {
		t.Fatal(err)
	}
	call(t, p, "echo", "{}") // what came behind the answer has been read too
	want := []string{"1/4 first", "0.5/- ", "2/- key ***", "3/- " + long[:MaxProgressText]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// TestProgressOnlyWhenAskedFor: a server is given a token only where somebody listens, and what it
// reports without one is dropped.
func TestProgressOnlyWhenAskedFor(t *testing.T) {
	for _, mode := range []string{"normal", "modern"} {
		t.Run(mode, func(t *testing.T) {
			p := open(t, nil, fake(mode))
			heard := 0
			meta := func(ctx context.Context) map[string]any {
				raw, err := p.Call(ctx, "fake", "progress", said(t, 1, `,"progress":1`))
				var got map[string]any
				if err != nil || json.Unmarshal(raw, &got) != nil {
					t.Fatalf("got %s, %v", raw, err)
				}
				return got
			}
			with := meta(WithProgress(t.Context(), func(Progress) { heard++ }))
			without := meta(t.Context())
			if heard != 1 {
				t.Errorf("%d reports were heard", heard)
			}
			token, _ := with["progressToken"].(string)
			delete(with, "progressToken")
			if len(with) == 0 {
				with = nil
			}
			if token == "" {
				t.Error("the server was given no token")
			}
			if diff := cmp.Diff(without, with); diff != "" {
				t.Errorf("a token changes more than itself (-without +with):\n%s", diff)
			}
			if mode == "modern" && len(without) != 4 {
				t.Errorf("the meta of the connection is %v", without)
			}
		})
	}
}

// TestNoProgressAfterTheCall: once Call has returned nothing is told, also when it returned because
// its context ended.
func TestNoProgressAfterTheCall(t *testing.T) {
	p := open(t, nil, fake("normal"))
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		over, late := false, false // unguarded: the race detector sees a report that comes beside what follows
		_, err := p.Call(WithProgress(ctx, func(Progress) {
			late = late || over
			cancel()
		}), "fake", "progress", said(t, 500, `,"progress":1`))
		over = true
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		call(t, p, "echo", "{}")
		if late {
			t.Fatal("a report came after the call")
		}
	}
}
