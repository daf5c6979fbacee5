# Names its own exception as Python names the real one. A name makes no memory limit.
# want: {"status":"error","exitCode":1,"error":{"type":"MemoryError","message":"not at all","line":7}}


class MemoryError(Exception):
    pass
raise MemoryError("not at all")
