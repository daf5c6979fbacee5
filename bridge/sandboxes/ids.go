package sandboxes

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// letters are the 32 of ids, without l and o, which look like 1 and 0.
const letters = "abcdefghijkmnpqrstuvwxyz23456789"

// ids gives out names that can't be guessed from those before, each once. The numbers from 0 on are
// permuted under a random key, so nothing has to be remembered of the names that were given out.
type ids struct {
	key  [sha256.Size]byte
	n    uint64
	long bool // they are kept in files, and must differ from those of other bridges
}

func newIDs(long bool) ids {
	s := ids{long: long}
	_, _ = rand.Read(s.key[:]) // never fails
	return s
}

// short is how many numbers have names of four letters; those beyond have six.
const short = 1 << 20

// longName is how many letters a name has that no other bridge may give out. They are chosen at
// random among 2^40, and there are some thousands at the most. It is no secret from other programs
// of the same user: who guesses one finds sandboxes of that user, whose files they could read.
const longName = 8

// next returns the next name.
func (s *ids) next() string {
	for s.long {
		name := make([]byte, longName)
		_, _ = rand.Read(name) // never fails
		for i, b := range name {
			name[i] = letters[b&31]
		}
		if name[0] >= 'a' {
			return string(name)
		}
	}
	for {
		n := s.n
		s.n++
		half, length := 10, 4
		if n >= short {
			n, half, length = n-short, 15, 6
		}
		v := s.permute(uint32(n), half)
		name := make([]byte, length)
		for i := range name {
			name[length-1-i] = letters[v&31]
			v >>= 5
		}
		if name[0] >= 'a' { // it doesn't look like a number
			return string(name)
		}
	}
}

// permute maps the numbers of 2*half bits to each other, by four rounds of a Feistel network.
func (s *ids) permute(v uint32, half int) uint32 {
	mask := uint32(1)<<half - 1
	left, right := v>>half&mask, v&mask
	for round := range 4 {
		of := binary.BigEndian.AppendUint32(append(s.key[:], byte(half), byte(round)), right)
		sum := sha256.Sum256(of)
		left, right = right, left^binary.BigEndian.Uint32(sum[:])&mask
	}
	return left<<half | right
}
