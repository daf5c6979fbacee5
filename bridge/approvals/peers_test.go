package approvals

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// elsewhere is another directory for sockets.
func (w *world) elsewhere() string {
	w.t.Helper()
	dir, err := os.MkdirTemp("", "ap[") //nolint:usetesting // a socket's path is short
	w.must(err)
	w.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestPeerGoesOn: a bridge that ends leaves in the record that another one still runs code. What
// that code writes is held, also where the power fails before the other has ended.
func TestPeerGoesOn(t *testing.T) {
	w := newWorld(t)
	w.hasGood()
	a := w.serve()
	b := w.serve()
	w.end(b)
	w.write("~/.config/mcp/servers/x.json", one("evil", "evil")) // by the code of a
	w.later()
	a.door.close(true) // the power fails: neither a nor its watchdog writes
	c := w.finds("evil", "good")
	w.must(c.Close())
}

// TestPeerBegins: a bridge that begins to run code while another one writes what is known at its
// end stays in the record.
func TestPeerBegins(t *testing.T) {
	w := newWorld(t)
	a := w.serve()
	dir := filepath.Join(w.cfg.Sockets[0], runtime.Self().NewName())
	w.must(os.Mkdir(dir, 0o700))
	listener, err := net.Listen("unix", filepath.Join(dir, a.peers.socket()))
	w.must(err)
	defer listener.Close()
	began := time.Now().UTC()
	go func() {
		for n := 0; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var m message
			r := reply{}
			if n > 0 {
				r.Since = began
			}
			_ = json.NewDecoder(conn).Decode(&m)
			_ = json.NewEncoder(conn).Encode(r)
			_ = conn.Close()
		}
	}()
	w.must(a.Close())
	if r, err := load(w.cfg.Record); err != nil || !r.Serving.Equal(began) {
		t.Errorf("the record says %v, %v, want %v", r.Serving, err, began)
	}
}

// TestSeveralPlaces: bridges meet although they can't listen in the same directory, and a yes
// reaches all.
func TestSeveralPlaces(t *testing.T) {
	w := newWorld(t)
	w.cfg.Sockets = append(w.cfg.Sockets, w.elsewhere())
	w.hasGood()
	first := w.cfg
	first.Sockets = []string{filepath.Join(w.cfg.Sockets[0], "none"), w.cfg.Sockets[1], w.cfg.Sockets[0]}
	a := New(first)
	a.Update(w.scan())
	a.Begin()
	b := w.serve()
	w.end(b)
	w.write("~/.config/mcp/servers/x.json", one("evil", "evil")) // by the code of a
	w.later()
	c := w.finds("evil", "good")
	c.Reach()
	for _, s := range w.scan().Servers {
		if told, err := New(first).Approve(s); told != 2 || err != nil {
			t.Errorf("%d were told, %v", told, err)
		}
	}
	w.end(c)
	w.end(a)
}

// TestStoppedPeer: while a bridge is there and says nothing, what is unknown is held, and the
// record keeps what it knew. A yes says what to do. What the user has written by then isn't held
// for good.
func TestStoppedPeer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("~/.cursor/mcp.json", one("s", "x"))
	w.later()
	a := w.serve()
	w.end(a)
	a = w.serve()
	before, err := os.ReadFile(w.cfg.Record)
	w.must(err)
	a.mu.Lock() // as after Ctrl-Z
	w.write("~/.junie/mcp/mcp.json", one("mine", "mine"))
	if _, held, _ := w.start(); held != "mine s" {
		t.Errorf("%q is held", held)
	}
	command := New(w.cfg)
	if told, err := command.Approve(w.scan().Servers[0]); told != 0 || !errors.Is(err, errSilent) {
		t.Errorf("%d were told, %v", told, err)
	}
	w.must(command.Close())
	if after, err := os.ReadFile(w.cfg.Record); err != nil || string(after) != string(before) {
		t.Errorf("the record is now %s, %v", after, err)
	}
	a.mu.Unlock()
	w.end(a)
	b, held, free := w.start()
	if !strings.Contains(free, "s") {
		t.Errorf("%q is held, %q not", held, free)
	}
	w.must(b.Close())
}

// TestBesideStoppedPeer: a bridge that runs code beside one that says nothing notes just that in
// the record, and learns what is known once the other one answers.
func TestBesideStoppedPeer(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		w := newWorld(t)
		w.write("~/.cursor/mcp.json", one("s", "x"))
		w.later()
		a := w.serve()
		a.mu.Lock()
		b := w.serve()
		if r, err := load(w.cfg.Record); err != nil || len(r.Known) != 1 || r.Serving.IsZero() {
			t.Errorf("the record is %v, %v", r, err)
		}
		a.mu.Unlock()
		if killed {
			a.door.close(true)
		}
		w.write("~/.config/mcp/servers/x.json", one("evil", "evil")) // by the code of b
		w.later()
		w.end(b)
		if !killed {
			w.end(a)
		}
		c, held, free := w.start()
		if held != "evil" || free != "s" {
			t.Errorf("killed %v: %q is held, %q not", killed, held, free)
		}
		w.must(c.Close())
	}
}

// TestKilledPeer: a bridge that starts after another was killed waits until its watchdog has
// written the record, whatever code has left there. Where the watchdog was killed too, all is held,
// once.
func TestKilledPeer(t *testing.T) {
	for _, watchdog := range []bool{true, false} {
		t.Run(fmt.Sprintf("watchdog %v", watchdog), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.hasGood()
			k := &keeper{kept: map[int][]byte{}}
			w.cfg.Guard = k
			a := w.serve()
			a.Update(w.scan())
			w.write("~/.config/mcp/servers/x.json", one("evil", "evil")) // by code
			w.forge()
			a.door.close(false) // a is killed
			want := [2]string{"evil good", ""}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if !watchdog {
					return
				}
				time.Sleep(10 * deadPoll) // it takes its time
				for _, text := range k.kept {
					_ = os.WriteFile(w.cfg.Record, text, 0o600)
				}
				_ = os.RemoveAll(a.door.dir)
			}()
			if watchdog {
				want = [2]string{"evil", "good"}
			}
			if !IsDoor(a.door.dir) || IsDoor(w.home) {
				t.Errorf("%s is a directory like any other, or %s isn't", a.door.dir, w.home)
			}
			b, held, free := w.start()
			<-ended
			because := heldReason
			if !watchdog {
				because = "a bridge has ended without writing the record"
			}
			c := b.WithoutHeld(w.scan(), func(discovery.Server) string { return "" })
			if len(c.Problems) == 0 || !strings.HasPrefix(c.Problems[0].Reason, because) {
				t.Errorf("held are %+v", c.Problems)
			}
			if held != want[0] || free != want[1] {
				t.Errorf("%q is held, %q not, want %q", held, free, want)
			}
			if len(b.Grants()) > 0 || b.state.Policies["policy.toml"] != "" {
				t.Errorf("grants %v and policies %v of the forged record count", b.Grants(), b.state.Policies)
			}
			b.Begin()
			if _, err := os.Stat(a.door.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the directory of the dead one: %v", err)
			}
			w.end(b)
		})
	}
}

// TestDeadIsWaitedForOnce: a start asks more than once what is known, and waits for the watchdog of
// a bridge that was killed with it the first time.
func TestDeadIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.serve()
	a.door.close(false) // it is killed
	p := &peers{record: w.cfg.Record, places: w.cfg.Sockets}
	synctest.Test(t, func(t *testing.T) {
		for i, least := range []time.Duration{deadWait, 0} {
			began := time.Now()
			heard := p.join()
			if took := time.Since(began); len(heard.dead) != 1 || took < least || i == 1 && took > 0 {
				t.Errorf("the %d. took %v: %+v", i+1, took, heard)
			}
		}
	})
}

// TestRecordCantBeWritten: where a bridge can't write the record at its end, the next one doesn't
// believe what code has left there.
func TestRecordCantBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hasGood()
	a := w.serve()
	w.write("~/.config/mcp/servers/x.json", one("evil", "evil")) // by code
	record := a.cfg.Record
	w.write("file", "")
	a.cfg.Record = w.path("file/approved.json") // its directory can't be made
	socket := a.door.listener.Addr().String()
	if err := a.Close(); err == nil {
		t.Fatal("the record was written")
	}
	a.cfg.Record = record
	w.forge()
	if _, err := os.Lstat(socket); err != nil {
		t.Error(err)
	}
	b, held, _ := w.start()
	if held != "evil good" {
		t.Errorf("%q is held", held)
	}
	w.must(b.Close())
}

// TestUnwritable: where the record can't be written, no start waits for the watchdog of a bridge
// that has ended, and what is held is held for that reason.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hasGood()
	w.write("file", "")
	w.cfg.Record = w.path("file/approved.json") // its directory can't be made
	a := w.serve()
	var unwritable *text.HintError
	if err := a.Close(); !errors.As(err, &unwritable) || !strings.Contains(unwritable.Hint(), w.path("file")) {
		t.Fatalf("got %v", err)
	}
	if err := a.Writable(); !errors.As(err, &unwritable) {
		t.Errorf("got %v", err)
	}
	var log bytes.Buffer
	w.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	b, held, _ := w.start()
	err := b.Refuse(w.scan().Servers[0])
	if held != "good" || err == nil ||
		!strings.HasPrefix(err.Error(), "the record of approved servers can't be") {
		t.Errorf("%q is held: %v", held, err)
	}
	if !strings.Contains(log.String(), w.path("file/approved.json")) {
		t.Errorf("the log has %s", log.String())
	}
	synctest.Test(t, func(t *testing.T) { // its clock goes on only where all wait
		began := time.Now()
		if heard := b.peers.join(); len(heard.dead) != 1 || !time.Now().Equal(began) {
			t.Errorf("after %v it heard %+v", time.Since(began), heard)
		}
	})
	if _, err := b.Approve(w.scan().Servers[0]); !errors.As(err, &unwritable) {
		t.Errorf("got %v", err)
	}
}
