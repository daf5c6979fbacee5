package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery/install"
)

// TestHostPages: each host that install knows has a page, which says what it was tried on. The
// versions are those that test/hosts installs.
func TestHostPages(t *testing.T) {
	const docs = "../../docs/"
	text, err := os.ReadFile("../../test/hosts/package.json")
	must(t, err)
	var driven struct{ Dependencies map[string]string }
	must(t, json.Unmarshal(text, &driven))
	packages := map[string]string{"claude-code": "@anthropic-ai/claude-code", "codex": "@openai/codex",
		"gemini-cli": "@google/gemini-cli", "opencode": "opencode-ai"}
	if len(packages) != len(driven.Dependencies) {
		t.Errorf("test/hosts drives %v", driven.Dependencies)
	}
	overview, err := os.ReadFile(docs + "hosts.md")
	must(t, err)
	guide, err := os.ReadFile(docs + "install.md")
	must(t, err)
	tried := strings.Fields(string(guide))
	of := map[string]string{"vscode-insiders": "vscode", "vscodium": "vscode", "devin-desktop": "windsurf"}
	for _, h := range install.Known() {
		if of[h.ID] != "" {
			continue
		}
		page, err := os.ReadFile(docs + "hosts/" + h.ID + ".md")
		if err != nil {
			t.Errorf("%s has no page: %v", h.ID, err)
			continue
		}
		holds(t, string(overview), "](hosts/"+h.ID+".md)")
		holds(t, string(page), "mcp-bridge install "+h.ID, "mcp-bridge adopt "+h.ID)
		version := driven.Dependencies[packages[h.ID]]
		run := regexp.MustCompile(`\nRun with the real program \(([^)]*)\)`).FindStringSubmatch(string(page))
		switch {
		case version == "" && !strings.Contains(string(page), "\nNot run here"):
			t.Errorf("the page of %s doesn't say that it was not run", h.ID)
		case version != "" && (run == nil || run[1] != version):
			t.Errorf("the page of %s says that it was run with %q, test/hosts installs %s", h.ID, run, version)
		case version != "" && !slices.Contains(tried, version) && !slices.Contains(tried, version+","):
			t.Errorf("install.md says nothing of %s %s", h.ID, version)
		}
	}
}
