package policy

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// A Grant is the user's word that a tool may be called for good, where the policy has the user
// asked.
type Grant struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`

	// Principal is whose runs may call it; empty means Local.
	Principal string `json:"principal,omitempty"`

	// Definition is a hash of what the server is. With another one the user is asked again.
	Definition string    `json:"definition"`
	Since      time.Time `json:"since"`

	// Seen is what the server said of the tool then. A grant of a tool that wasn't known has none:
	// it holds for what the server says when the tool is called next.
	Seen Seen `json:"seen,omitzero"`
}

// Same reports whether two grants are to the same principal, of the same tool and definition.
func (g Grant) Same(o Grant) bool {
	return g.Server == o.Server && g.Tool == o.Tool && g.Definition == o.Definition &&
		cmp.Or(g.Principal, Local) == cmp.Or(o.Principal, Local)
}

// Seen is what a server said of a tool when the user allowed it for good, as hashes. The zero value
// is not known.
type Seen struct {
	Description string `json:"description"`
	Schema      string `json:"schema"`
	Annotations string `json:"annotations"`
}

// SeenOf hashes what a server says of a tool. The order of an object's members doesn't count.
func SeenOf(description []string, schemas []json.RawMessage, annotations json.RawMessage) Seen {
	var said, shape [][]byte
	for _, text := range description {
		said = append(said, []byte(text))
	}
	for _, schema := range schemas {
		shape = append(shape, canonical(schema))
	}
	return Seen{Description: hash(said...), Schema: hash(shape...), Annotations: hash(canonical(annotations))}
}

// Changed names what is not as it was. Where either isn't known there is nothing to name.
func (s Seen) Changed(now Seen) []string {
	var changed []string
	for _, part := range []struct{ name, was, is string }{
		{"description", s.Description, now.Description},
		{"schema", s.Schema, now.Schema},
		{"annotations", s.Annotations, now.Annotations},
	} {
		if s != (Seen{}) && now != (Seen{}) && part.was != part.is {
			changed = append(changed, part.name)
		}
	}
	return changed
}

// hash takes each part whole: what ends one can't begin the next.
func hash(parts ...[]byte) string {
	all := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256(part)
		all.Write(sum[:])
	}
	return hex.EncodeToString(all.Sum(nil)[:16])
}

// canonical returns JSON with its members in order and without spaces; what can't be read stays as
// it is.
func canonical(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return text
}
