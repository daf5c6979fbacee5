package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Match returns where got isn't what pattern wants, or nil. Objects must have the same fields,
// arrays the same length; see Text for strings; the string "*" alone is any value.
func Match(pattern, got json.RawMessage) error {
	var p, g any
	if err := decode(pattern, &p); err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	if err := decode(got, &g); err != nil {
		return fmt.Errorf("got what is no JSON: %w", err)
	}
	return match("", p, g)
}

func match(at string, pattern, got any) error {
	switch p := pattern.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		for _, k := range slices.Sorted(maps.Keys(p)) {
			if _, ok := g[k]; !ok {
				return fmt.Errorf("%s.%s is missing, want %v", at, k, short(p[k]))
			}
			if err := match(at+"."+k, p[k], g[k]); err != nil {
				return err
			}
		}
		for _, k := range slices.Sorted(maps.Keys(g)) {
			if _, ok := p[k]; !ok {
				return fmt.Errorf("%s.%s = %v is not in the transcript", at, k, short(g[k]))
			}
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok || len(p) != len(g) {
			break
		}
		for i := range p {
			if err := match(fmt.Sprintf("%s[%d]", at, i), p[i], g[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		if g, ok := got.(string); p == "*" || ok && Text(p, g) {
			return nil
		}
	default:
		if p == got {
			return nil
		}
	}
	return fmt.Errorf("%s = %v, want %v", at, short(got), short(pattern))
}

func short(v any) string {
	s := fmt.Sprintf("%#v", v)
	if len(s) > 500 {
		return s[:250] + " … " + s[len(s)-250:]
	}
	return s
}

// Text reports whether got is as pattern, in which each * stands for any text.
func Text(pattern, got string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == got
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(got) < len(first)+len(last) || !strings.HasPrefix(got, first) || !strings.HasSuffix(got, last) {
		return false
	}
	got = got[len(first) : len(got)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(got, part)
		if !found {
			return false
		}
		got = rest
	}
	return true
}

// samples are values for fields whose value a transcript leaves open.
var samples = map[string]any{
	"durationMs": 1.5, "modified": 1.5,
	"options": map[string]any{}, "providers": []any{},
	"bytes": 1 << 20,
}

// Sample returns the frame of a line as it can be played: what the transcript leaves open has some
// value that fits.
func (l Line) Sample() json.RawMessage {
	var v any
	if err := decode(l.Frame, &v); err != nil {
		return nil // no frame
	}
	data, err := json.Marshal(sample("", v))
	if err != nil {
		return nil // it came from JSON
	}
	return data
}

func sample(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = sample(k, e)
		}
	case []any:
		for i, e := range v {
			v[i] = sample("", e)
		}
	case string:
		if s, ok := samples[name]; ok && v == "*" {
			return s
		}
		return strings.ReplaceAll(v, "*", "…")
	}
	return v
}
