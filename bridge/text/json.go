package text

import "encoding/json"

// Given returns raw, or nil where it is null or missing.
func Given(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// FromJSON returns the string that raw encodes. It reports false for anything else, such as null.
func FromJSON(raw json.RawMessage) (string, bool) {
	var s *string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// JSON returns v as JSON. It panics where v can't be encoded, which is a mistake of the caller.
func JSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
