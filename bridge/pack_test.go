package bridge

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// logged is what code prints: lines that look alike, of characters of several bytes.
func logged(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "%06d größe=%d 日本 state=ok\n", i, i*7919%1000)
	}
	return b.String()
}

// TestPackedReadsTheSame: a document that is compressed is read as before, wherever its pieces end.
func TestPackedReadsTheSame(t *testing.T) {
	random := make([]byte, 300_000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	text := logged(20_000)
	stdout, stderr := streams([]sandbox.Chunk{
		{Stream: "stdout", Text: text[:back(text, 70_001)]}, {Stream: "stdout", Text: "é"}, {Stream: "stdout", Lost: 12_345}, {Stream: "stdout", Text: text},
		{Stream: "stderr", Text: base64.StdEncoding.EncodeToString(random)}, {Stream: "stderr", Text: strings.ToValidUTF8(string(random), "?")},
	})
	d, _ := both(stdout, stderr)
	packed := d.packed()
	if packed.size() != d.size() {
		t.Fatalf("%d bytes, want %d", packed.size(), d.size())
	}
	for range 300 {
		from := r.Int64N(d.size() + 10)
		to := from + r.Int64N(200_000)
		want, wantLost := d.slice(from, to)
		if got, lost := packed.slice(from, to); got != want || lost != wantLost {
			t.Fatalf("from %d to %d there are %d bytes without %d, want %d without %d", from, to, len(got), lost, len(want), wantLost)
		}
		if got, want := packed.align(from), d.align(from); got != want {
			t.Fatalf("%d is aligned to %d, want %d", from, got, want)
		}
	}
	if again := packed.packed(); again.size() != d.size() || again.held() != packed.held() {
		t.Errorf("packed again it has %d bytes in %d", again.size(), again.held())
	}
}

// TestKeptIsCompressed: what a run printed takes a fraction of its size once its caller is answered, however much of it is kept, and as
// much can be read as before.
func TestKeptIsCompressed(t *testing.T) {
	text := logged(50_000)
	b := running(t, func(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
		return sandbox.Result{Status: sandbox.StatusOK, Output: []sandbox.Chunk{{Stream: "stdout", Text: text}}}, nil
	})
	p := connect(t, b)
	const calls = 30
	for range calls {
		p.call(`{"code":"x"}`)
	}
	var now, printed int64
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if now, printed = keptBytes(b); now < printed/4 {
			break
		}
	}
	fits := maxKeptBytes / (int64(len(text)) + entryOverhead + spanCost)
	if now >= printed/4 || printed != min(calls, fits)*int64(len(text)) {
		t.Errorf("%d bytes are held of %d that were printed, of runs of %d", now, printed, len(text))
	}
}

// keptBytes is how much memory what runs printed takes, and how much it is.
func keptBytes(b *Bridge) (held, printed int64) {
	b.kept.mu.Lock()
	defer b.kept.mu.Unlock()
	for _, r := range b.kept.kept {
		held += r.doc.held()
		printed += r.doc.size()
	}
	return held, printed
}
