# Runs code in another interpreter of the same process, which ends it.
# want: {"status":"exit","exitCode":12,"stdout":"before\ninside\n"}
code = "import os\nos.write(1, b'inside\\n')\nos._exit(12)"
print("before")
try:
    import _interpreters

    _interpreters.exec(_interpreters.create("legacy"), code)
except ImportError:
    import _xxsubinterpreters

    _xxsubinterpreters.run_string(_xxsubinterpreters.create(isolated=False), code)
