package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// cookbookServers are the servers of docs/cookbook.md. They work in dir, and what they are asked
// and answer is recorded: see recorder.
func cookbookServers(t *testing.T, from, dir, records string) map[string]entry {
	t.Helper()
	node := filepath.Join(from, "npm", "node_modules", ".bin")
	server := func(name string, command ...string) entry {
		e := shop(t) // whose arguments say that it isn't the bridge itself
		e.Env = map[string]string{asRecorder: asJSON(t, recorder{filepath.Join(records, name), dir, command}),
			"HOME": dir, "PATH": os.Getenv("PATH"), "MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")}
		return e
	}
	python := filepath.Join(from, "python", "bin")
	return map[string]entry{
		"fetch": server("fetch", filepath.Join(python, "mcp-server-fetch"), "--ignore-robots-txt",
			"--allow-private-ips"),
		"filesystem": server("filesystem", filepath.Join(node, "mcp-server-filesystem"), "."),
		"git":        server("git", filepath.Join(python, "mcp-server-git"), "--repository", "repo"),
		"memory":     server("memory", filepath.Join(node, "mcp-server-memory")),
		"sqlite": server("sqlite", filepath.Join(from, "python-sqlite", "bin", "mcp-server-sqlite"), "--db-path",
			"shop.db"),
	}
}

// cookbookData writes what the servers have: the same each time. web is where cookbookWeb is.
func cookbookData(t *testing.T, from, dir, web string) {
	t.Helper()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for i := 1; i <= 200; i++ {
		text := fmt.Sprintf("# Meeting %d\n\n%s\n", i, prose(i, 100))
		if i%29 == 3 {
			text += "\nNext: show Kestrel to the board.\n"
		}
		write(fmt.Sprintf("notes/note-%03d.md", i), text)
	}
	var sales, contacts strings.Builder
	sales.WriteString("order,date,country,product,amount,status\n")
	for i := range 5000 {
		cents := 500 + i*7919%89519
		fmt.Fprintf(&sales, "%d,2026-%02d-%02d,%s,%s,%d.%02d,%s\n", 10001+i, 1+i/500, 1+i%28, pick(i*7,
			"DE", "FR", "IT", "PL", "US"), pick(i*3, "lamp", "desk", "chair", "shelf"), cents/100, cents%100,
			pick(i*11/3, "shipped", "shipped", "paid", "refunded", "shipped", "open"))
	}
	write("sales.csv", sales.String())
	contacts.WriteString("name,role,company\n")
	for i := range 80 {
		fmt.Fprintf(&contacts, "%s %s,%s,%s\n", pick(i, "Ana", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gil", "Hana"),
			pick(i/8, "Abbot", "Bauer", "Cruz", "Dunn", "Egede", "Faber", "Grieg", "Haas", "Ivers", "Jonas"),
			pick(i*5/3, "engineer", "buyer", "director", "lawyer"), pick(i*3, "Acme", "Borealis", "Cobalt", "Delta",
				"Ember", "Fjord", "Granit"))
	}
	write("contacts.csv", contacts.String())
	for i := range 60 {
		write(fmt.Sprintf("scans/Scan 2026-%02d-%02d (%d).pdf", 1+i/15, 1+i/3%28, 1+i%3), "%PDF-1.4\n")
	}
	for i := range 15 {
		text := fmt.Sprintf("# Page %d\n", i)
		for j := range 4 {
			link := i*4 + j
			path := fmt.Sprintf("docs/%d", link)
			if link%23 == 5 {
				path = fmt.Sprintf("gone/%d", link)
			}
			text += fmt.Sprintf("\n%s [more](%s/%s).\n", prose(link, 20), web, path)
		}
		write(fmt.Sprintf("site/page-%02d.md", i), text)
	}
	write("memory.jsonl", teams())
	history(t, filepath.Join(dir, "repo"))
	customers(t, from, filepath.Join(dir, "shop.db"))
}

// pick returns one of the words, round and round.
func pick(i int, words ...string) string { return words[i%len(words)] }

// prose returns a number of words.
func prose(seed, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(pick(seed*31+i*i+i*seed, "we", "agreed", "on", "the", "plan", "for", "next", "week", "and",
			"moved", "release", "date", "because", "tests", "were", "slow", "customers", "asked", "about", "prices",
			"again", "budget", "is", "open", "until", "Friday", "someone", "calls", "them", "back"))
		b.WriteString(" ")
	}
	return strings.TrimSpace(b.String()) + "."
}

var authors = []string{"Ana Abel", "Ben Berg", "Cleo Costa", "Dan Duval", "Eva Ek", "Finn Fuchs", "Gil Gallo"}

// teams returns a knowledge graph as the server memory keeps it.
func teams() string {
	var b strings.Builder
	line := func(v map[string]any) {
		text, _ := json.Marshal(v) // of strings
		b.Write(append(text, '\n'))
	}
	for i, name := range authors[:6] {
		line(map[string]any{"type": "entity", "name": name, "entityType": "person", "observations": []string{
			prose(i, 12)}})
		line(map[string]any{"type": "relation", "from": name, "to": pick(i, "Parser", "Storage", "Web"),
			"relationType": "works in"})
	}
	for i, name := range []string{"Parser", "Storage", "Web"} {
		line(map[string]any{"type": "entity", "name": name, "entityType": "team", "observations": []string{
			prose(i+9, 12)}})
	}
	return b.String()
}

// history makes a repository of 300 commits.
func history(t *testing.T, dir string) {
	t.Helper()
	const commits = 300
	var in strings.Builder
	for i := range commits {
		author := authors[(i*i+i/5)%len(authors)]
		message := fmt.Sprintf("%s: %s", pick(i*i+i/7, "fix", "feat", "fix", "docs", "test"), prose(i, 8))
		fmt.Fprintf(&in, "commit refs/heads/main\nauthor %s <%s@example.org> %d +0000\ncommitter %[1]s "+
			"<%[2]s@example.org> %[3]d +0000\ndata %d\n%s\n", author, strings.ToLower(author[:3]),
			1767225600+i*90000, len(message), message)
		text := prose(i, 5)
		fmt.Fprintf(&in, "M 100644 inline file-%d.txt\ndata %d\n%s\n", i%40, len(text), text)
	}
	for _, step := range []struct{ in, args string }{{"", "init -q -b main ."},
		{in.String(), "fast-import --quiet"}} {
		must(t, os.MkdirAll(dir, 0o700))
		cmd := exec.CommandContext(t.Context(), "git", strings.Fields(step.args)...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(step.in)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", step.args, err, out)
		}
	}
}

// customers makes a database with a table of 600 rows.
func customers(t *testing.T, from, path string) {
	t.Helper()
	var sql strings.Builder
	sql.WriteString("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, plan TEXT, country TEXT, " +
		"seats INTEGER);\n")
	for i := 1; i <= 600; i++ {
		fmt.Fprintf(&sql, "INSERT INTO customers VALUES (%d, '%s %d', '%s', '%s', %d);\n", i, pick(i*3, "Acme",
			"Borealis", "Cobalt", "Delta", "Ember"), i, pick(i*7/2, "free", "team", "pro"), pick(i, "DE", "FR", "IT",
			"PL"), i*17%90)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(from, "python-sqlite", "bin", "python3"), "-c",
		"import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript('BEGIN;' + sys.stdin.read() + 'COMMIT;')",
		path)
	cmd.Stdin = strings.NewReader(sql.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("python3: %v: %s", err, out)
	}
}

// cookbookWeb serves documents, a job that is done when it has been asked for often enough, and
// reports of which each third fails at first.
func cookbookWeb(t *testing.T) (url string) {
	t.Helper()
	var mu sync.Mutex
	asked := map[string]int{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path]++
		times := asked[r.URL.Path]
		mu.Unlock()
		kind, id, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
		n, err := strconv.Atoi(id)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		say := func(v map[string]any) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		}
		switch {
		case kind == "docs":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = fmt.Fprintln(w, prose(n, 80))
		case kind == "jobs" && times < 3:
			say(map[string]any{"id": n, "state": "queued", "seconds": times, "message": "waiting for a runner"})
		case kind == "jobs" && times < 12:
			say(map[string]any{"id": n, "state": "running", "seconds": times,
				"message": fmt.Sprintf("%d %% built", times*8)})
		case kind == "jobs":
			say(map[string]any{"id": n, "state": "failed", "seconds": times, "message": "tests: 2 of 412 failed"})
		case kind == "reports" && n%3 == 0 && times <= n%2+1:
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case kind == "reports":
			say(map[string]any{"report": n, "total": n * 113 % 1000, "note": prose(n, 40)})
		default:
			http.Error(w, "gone", http.StatusGone)
		}
	}))
	t.Cleanup(web.Close)
	return web.URL
}
