# Calls itself without end.
# want: {"status":"error","exitCode":1,"error":{"type":"RecursionError","line":6}}


def again():
    again()


again()
