package text

import (
	"bytes"
	"encoding/json"
)

// Schema returns a JSON schema with titles and descriptions that are safe to show. What the schema
// demands, such as names and the values of an enum, stays as it is.
func Schema(raw json.RawMessage) json.RawMessage {
	if isPlain(string(raw)) && !bytes.Contains(raw, []byte(`\`)) {
		return raw
	}
	var out []byte
	copied, about := 0, false // about: the string before was the name title or description
	for at := 0; at < len(raw); {
		if raw[at] != '"' {
			about = about && (raw[at] == ':' || raw[at] <= ' ')
			at++
			continue
		}
		end := stringEnd(raw, at)
		var s string
		if json.Unmarshal(raw[at:end], &s) != nil {
			return raw
		}
		if safe := Safe(s); about && safe != s {
			encoded, err := json.Marshal(safe)
			if err != nil {
				return raw
			}
			out = append(append(out, raw[copied:at]...), encoded...)
			copied = end
		}
		about = s == "description" || s == "title"
		at = end
	}
	if copied == 0 {
		return raw
	}
	return append(out, raw[copied:]...)
}

// stringEnd returns where the JSON string ends that begins at a quotation mark.
func stringEnd(raw []byte, at int) int {
	for at++; at < len(raw); at++ {
		switch raw[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(raw)
}
