# Lies about its own source and file to whatever makes a traceback.
# want: {"status":"error","exitCode":1,"error":{"type":"ZeroDivisionError"}}
import linecache


class Lines:
    def __getitem__(self, n):
        raise SystemExit(0)

    def __len__(self):
        return 1 << 40


linecache.cache["<run_python>"] = (1, None, Lines(), "<run_python>")
linecache.getline = linecache.getlines = linecache.checkcache = lambda *args, **more: 1 / 0
exec(compile("1 / 0", "<guest>/../../etc/passwd", "exec"))
