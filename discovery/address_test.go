package discovery

import (
	"net/url"
	"testing"
)

func parsed(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestOriginOf(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"https://mcp.example/a", "HTTPS://MCP.example:443/b?c", true},
		{"http://mcp.example", "http://mcp.example:80/", true},
		{"http://[::1]:8080/", "http://[::1]:8080/mcp", true},
		{"https://mcp.example", "http://mcp.example", false},
		{"https://mcp.example", "https://mcp.example:80", false},
		{"https://mcp.example", "https://mcp.example.evil.example", false},
		{"https://mcp.example", "https://mcp.example@evil.example", false},
	} {
		if got := OriginOf(parsed(t, tt.a)) == OriginOf(parsed(t, tt.b)); got != tt.same {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}

func TestConfidential(t *testing.T) {
	for raw, want := range map[string]bool{
		"https://mcp.example/mcp": true, "http://localhost:1/mcp": true, "http://LOCALHOST./": true,
		"http://127.0.0.2/": true, "http://[::1]:1/": true,
		"http://mcp.example/mcp": false, "http://10.0.0.1/": false, "http://a.localhost/": false,
		"http://0.0.0.0/": false, "http://127.0.0.1.evil.example/": false, "http://127.1/": false,
	} {
		if got := Confidential(parsed(t, raw)); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}
