# Gives tools what JSON has no word for: each is refused here, and nothing is sent but the question which tools there are.
# want: {"status":"ok","stdout":"nan\ncycle\nset\nhuge\nhalf\ndeep\nkey\n","calls":0}
loop = []
loop.append(loop)
deep = []
for _ in range(100_000):
    deep = [deep]
for name, value in {
    "nan": {"b": [1, float("nan")]}, "cycle": loop, "set": {1}, "huge": 1 << 70, "half": "\ud800", "deep": deep, "key": {1: 2},
}.items():
    try:
        mcp_shop.echo(text=value)
    except (TypeError, ValueError):
        print(name)
