package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image/png"
	"os"
	"strings"
	"testing"
	"time"
)

// TestDataOnEngine has the real data built for a call, from a cache that test/guest has filled and
// without a network. The client hears how far it is, and the code has all of its time. Then a
// table, a plot and a picture come through the bridge, also when pyplot was imported before the
// run.
func TestDataOnEngine(t *testing.T) {
	needEngine(t)
	if os.Getenv("MCP_BRIDGE_TEST_DATA") == "" {
		t.Skip("MCP_BRIDGE_TEST_DATA isn't set: removes the environment data and builds it; make guest does")
	}
	if out, err := command(t, nil, "env", "remove", "data").CombinedOutput(); err != nil {
		t.Logf("data wasn't there before, so it goes again: %s", out)
		t.Cleanup(func() { _ = command(t, nil, "env", "remove", "data").Run() }) // it may be gone
	}
	c := serve(t, with(command(t, nil), "HTTPS_PROXY=http://127.0.0.1:9"))
	const begin = "# /// script\n# dependencies = [\"pandas\", \"matplotlib\", \"pillow\"]\n# ///\n"
	began := time.Now()
	got := parseAnswer(t, c.request("tools/call", map[string]any{"name": "run_python",
		"arguments": map[string]any{"code": begin + "print('ran')", "timeout": 2},
		"_meta":     map[string]any{"progressToken": "built"}}))
	if got.IsError && strings.Contains(got.Text, "can't be reached") {
		t.Skipf("PyPI isn't reachable, and the cache lacks wheels: %s", got.Text)
	}
	if got.IsError || got.Text != "ran\n[environment: data]" {
		t.Fatalf("the call for which data was built got %s", got.Text)
	}
	told := ""
	for len(c.notes) > 0 {
		told += string((<-c.notes).Params) + "\n"
	}
	holds(t, told, "building the environment data (", "compiling packages", `"progressToken":"built"`)
	t.Logf("built and run in %v, where the code has 2 s", time.Since(began))

	code := begin + "import sys\nahead = 'matplotlib.pyplot' in sys.modules\nimport matplotlib.pyplot as plt\n" +
		"import pandas as pd\nfrom PIL import Image\nprint('ahead:', ahead)\nplt.plot([1, 2])\n" +
		"display(Image.new('RGB', (7, 5)))\npd.DataFrame({'month': ['may'], 'sum': [4200]})"
	withinTime(t, time.Minute, "a guest has imported pyplot ahead", func() bool {
		m := c.request("tools/call", map[string]any{"name": "run_python",
			"arguments": map[string]any{"code": code, "timeout": 60}})
		got := parseAnswer(t, m)
		if got.IsError || !strings.Contains(got.Text, "month   sum\n0   may  4200\n") {
			t.Fatalf("the table isn't there: %s", got.Text)
		}
		checkPictures(t, m.Result)
		return strings.HasPrefix(got.Text, "ahead: True\n")
	})
}

// checkPictures fails the test unless a result has one figure and a picture of 7 by 5 pixels.
func checkPictures(t *testing.T, result []byte) {
	t.Helper()
	var r struct {
		Content []struct{ Type, MIMEType, Data string }
	}
	must(t, json.Unmarshal(result, &r))
	small, large := 0, 0
	for _, part := range r.Content {
		if part.Type != "image" {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(part.Data)
		must(t, err)
		p, err := png.DecodeConfig(bytes.NewReader(data))
		must(t, err)
		switch {
		case p.Width == 7 && p.Height == 5:
			small++
		case p.Width > 200 && p.Height > 200:
			large++
		}
	}
	if small != 1 || large != 1 {
		t.Fatalf("there are %d pictures and %d figures, want one of each", small, large)
	}
}
