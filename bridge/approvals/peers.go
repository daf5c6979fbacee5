package approvals

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

const (
	peerWait   = 2 * time.Second  // for another bridge's answer
	deadWait   = 10 * time.Second // for the watchdog of one that was killed; it takes up to seven
	deadPoll   = 10 * time.Millisecond
	maxMessage = 8 << 20 // bytes of a message or an answer
)

// message is what bridges tell each other, as one line of JSON. An empty one only asks.
type message struct {
	Approve  string            `json:"approve,omitempty"`  // the user has said yes to the definition of this ID
	Grant    []policy.Grant    `json:"grant,omitempty"`    // the user allows these tools for good
	Forget   []policy.Grant    `json:"forget,omitempty"`   // no more
	Policies map[string]string `json:"policies,omitempty"` // the user trusts these policy files
	Known    map[string]string `json:"known,omitempty"`    // these are let in
	Deciding map[string]string `json:"deciding,omitempty"` // as in state
	Since    time.Time         `json:"since,omitzero"`     // code is run since then
}

// reply is the answer to any message.
type reply struct {
	state
	Since time.Time `json:"since,omitzero"`
}

// door is where others reach this process: a socket in a directory that only the user can enter,
// and that tells whose it is. While the directory is there, the record isn't up to date: the bridge
// and its watchdog remove it after they have written that.
type door struct {
	listener *net.UnixListener
	dir      string
	forget   func() // the Keeper was told of dir
	answers  sync.WaitGroup
}

// newDoor makes one in a directory. guard may be nil.
func newDoor(place, socket string, guard Keeper) (*door, error) {
	d := &door{dir: filepath.Join(place, runtime.Self().NewName()), forget: func() {}}
	if guard != nil {
		d.forget = guard.File(d.dir)
	}
	err := os.Mkdir(d.dir, 0o700)
	if err == nil {
		address := &net.UnixAddr{Name: filepath.Join(d.dir, socket), Net: "unix"}
		if d.listener, err = net.ListenUnix("unix", address); err == nil {
			return d, nil
		}
		_ = os.Remove(d.dir)
	}
	d.forget()
	return nil, err
}

// listen makes this process one that others reach.
func (a *Approvals) listen() {
	if len(a.cfg.Sockets) == 0 {
		return
	}
	var d *door
	var err error
	for _, place := range a.cfg.Sockets {
		if d, err = newDoor(place, a.peers.socket(), a.cfg.Guard); err == nil {
			break
		}
	}
	if err != nil {
		a.cfg.Log.Warn("other bridges can't be told which servers are approved", "err", err)
		return
	}
	a.peers.own.Store(d.dir)
	a.mu.Lock()
	a.door = d
	a.mu.Unlock()
	d.answers.Go(func() {
		for {
			conn, err := d.listener.Accept()
			if err != nil {
				if errors.Is(err, net.ErrClosed) {
					return
				}
				time.Sleep(10 * time.Millisecond) // such as no descriptor is left
				continue
			}
			d.answers.Go(func() { a.answer(conn) })
		}
	})
}

// close ends the door. It leaves the directory where the record couldn't be written.
func (d *door) close(written bool) {
	d.listener.SetUnlinkOnClose(written)
	_ = d.listener.Close()
	d.answers.Wait()
	if written {
		_ = os.RemoveAll(d.dir)
	}
	d.forget()
}

// answer does what another process says.
func (a *Approvals) answer(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(peerWait))
	var m message
	if json.NewDecoder(io.LimitReader(conn, maxMessage)).Decode(&m) != nil {
		return
	}
	a.mu.Lock()
	a.obey(m)
	text, err := json.Marshal(reply{a.state.bounded(), a.since})
	a.mu.Unlock()
	if err == nil {
		_, _ = conn.Write(append(text, '\n'))
	}
	if m.Approve != "" && a.cfg.Changed != nil {
		a.cfg.Changed()
	}
}

// peers finds the other bridges with one record.
type peers struct {
	record string
	places []string
	waited sync.Map     // directories of dead bridges whose watchdogs had their time
	own    atomic.Value // the directory of this process's door, a string, once there is one
}

// socketPrefix begins the names of sockets.
const socketPrefix = "a-"

// socket returns the name of the sockets of all with that record.
func (p *peers) socket() string {
	return fmt.Sprintf("%s%.4x", socketPrefix, sha256.Sum256([]byte(p.record)))
}

// IsDoor reports whether a bridge was reached through the directory. While that of a dead bridge is
// there, its record isn't believed: only a bridge that has written the record may remove it.
func IsDoor(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries,
		func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), socketPrefix) })
}

// send tells all other bridges something, and returns their answers.
func (p *peers) send(m message) (heard answers) {
	for _, socket := range p.others() {
		r, err := tell(socket, m)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			r, err = tell(socket, m) // where it was ending, it is now gone
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has ended
		case errors.Is(err, syscall.ECONNREFUSED):
			heard.dead = append(heard.dead, filepath.Dir(socket))
		case err != nil:
			heard.silent = true
		default:
			heard.replies = append(heard.replies, r)
		}
	}
	return heard
}

// answers are what other bridges say.
type answers struct {
	replies []reply
	silent  bool     // one is there and doesn't answer
	dead    []string // directories of those that have died, whose watchdogs haven't written the record yet
}

// join asks what is known. Where no bridge answers and one has died, it waits for its watchdog,
// once.
func (p *peers) join() answers {
	for deadline := time.Now().Add(deadWait); ; time.Sleep(deadPoll) {
		heard := p.send(message{})
		fresh := slices.DeleteFunc(slices.Clone(heard.dead), func(dir string) bool {
			_, waited := p.waited.Load(dir)
			return waited
		})
		over := time.Now().After(deadline)
		if over {
			for _, dir := range fresh {
				p.waited.Store(dir, true)
			}
		}
		if len(heard.replies) > 0 || heard.silent || len(fresh) == 0 || over ||
			writable(p.record) != nil { // nor can the watchdog write it
			return heard
		}
	}
}

// others returns the sockets of other bridges. Those of dead ones are among them.
func (p *peers) others() (sockets []string) {
	self := runtime.Self()
	for _, place := range p.places {
		entries, err := os.ReadDir(place)
		if err != nil {
			continue
		}
		for _, e := range entries {
			dir := filepath.Join(place, e.Name())
			socket := filepath.Join(dir, p.socket())
			owner, ok := runtime.OwnerNamed(e.Name(), self)
			here := ok && owner.BootID == self.BootID // nothing of another boot is alive
			if here && dir != p.own.Load() && trust.System().Path(socket) == nil {
				sockets = append(sockets, socket)
			}
		}
	}
	return sockets
}

func tell(socket string, m message) (r reply, err error) {
	conn, err := net.DialTimeout("unix", socket, peerWait)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(peerWait))
	text, err := json.Marshal(m)
	if err != nil {
		return r, err
	}
	if _, err = conn.Write(append(text, '\n')); err != nil {
		return r, err
	}
	return r, json.NewDecoder(io.LimitReader(conn, maxMessage)).Decode(&r)
}
