package install

import (
	"strings"
	"testing"
)

// TestSecretMeanwhile: an entry that changes after it was shown isn't written.
func TestSecretMeanwhile(t *testing.T) {
	const text = `{"mcpServers": {"a": {"command": "a", "env": {"KEY": "SECRET-13"}}}}`
	for id, file := range map[string]string{"cursor": cursor, "kiro": ".kiro/settings/mcp.json"} {
		h := newHost(t, id, map[string]string{file: text})
		in := New(h.cfg)
		moves := in.PlanMoves(wish()).All
		_, others, err := in.MoveFiles(moves)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(h.read(file), "SECRET-13", "SECRET-14", 1)
		h.write(file, changed)
		if err := h.journal.Write(t.Context(), others[0]); err == nil || h.read(file) != changed {
			t.Errorf("%v: %s", err, h.read(file))
		}
		if _, _, err := in.MoveFiles(moves); err == nil {
			t.Errorf("%s: it would be written", id)
		}
	}
}

// TestSharedSecret: a secret that two servers ask for goes with the last of them.
func TestSharedSecret(t *testing.T) {
	const both = `{"inputs": [{"id": "k"}], "servers": {"a": {"command": "a", "env": {"K": "${input:k}"}}, ` +
		`"b": {"command": "b", "env": {"K": "${input:k}"}}}}`
	for _, first := range []string{"a", "b"} {
		h := newHost(t, "vscode", map[string]string{vsCode: both})
		in := New(h.cfg)
		plan := in.PlanMoves(wish())
		h.write("secrets/VS-Code.k", "SECRET")
		plan.All[0].Set = []string{"VS-Code.k"} // the second finds it set
		own, others, err := in.MoveFiles(plan.All)
		if err != nil || len(others) != 1 {
			t.Fatal(err)
		}
		for _, f := range []*File{own, others[0]} {
			if err := h.journal.Write(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		for _, servers := range [][]string{{first}, nil} {
			back, err := h.journal.PlanUndo(nil, servers)
			if err != nil {
				t.Fatal(err)
			}
			var gone []string
			for _, r := range back {
				gone = append(gone, r.Secrets...)
				if err := h.journal.Undo(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
			if (len(gone) > 0) != (servers == nil) {
				t.Errorf("%s first, then %q: %q go", first, servers, gone)
			}
		}
	}
}
