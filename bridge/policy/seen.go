package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

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
