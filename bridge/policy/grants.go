package policy

import "time"

// A Grant is the user's word that a tool may be called for good, where the policy has the user
// asked.
type Grant struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`

	// Definition is a hash of what the server is. With another one the user is asked again.
	Definition string    `json:"definition"`
	Since      time.Time `json:"since"`

	// Seen is what the server said of the tool then. A grant of a tool that wasn't known has none:
	// it holds for what the server says when the tool is called next.
	Seen Seen `json:"seen,omitzero"`
}

// Same reports whether two grants are of the same tool and definition.
func (g Grant) Same(o Grant) bool {
	return g.Server == o.Server && g.Tool == o.Tool && g.Definition == o.Definition
}
