package console

import "testing"

func TestIsOpen(t *testing.T) {
	for statement, want := range map[string]bool{
		"x = 1\n": false, "x = [\n": true, "x = [\n1,\n": true, "x = [\n1]\n": false, "f(a, {1:\n": true,
		"s = '['\n": false, "s = \"([{\"\n": false, "x = 1 # (\n": false, "x = ( # )\n": true,
		"s = '''a\n": true, "s = '''a\nb'''\n": false, "s = \"\"\"'''\n": true, "s = ''\n": false,
		"s = 'it\\'s ['\n": false, "x = 1 + \\\n": true, "x = 1 + \\\n2\n": false, "x = 'a\n": false, ")\n": false,
		"s = '''\\\n": true, "": false, "\n": false, "#\n": false,
	} {
		if got := isOpen(statement); got != want {
			t.Errorf("%q: got %v", statement, got)
		}
	}
}
