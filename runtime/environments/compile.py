# Compiles sources that come in on standard input, and writes the bytecode to standard output. It runs in
# a container of a base image, and imports nothing of what it compiles.
#
# A source is its path and its content, and bytecode is the whole of a .pyc file that Python never
# compares with its source (PEP 552). Each is preceded by its length in four bytes. Bytecode without
# content stands for a source that can't be compiled, as some tests of packages can't. A MemoryError ends
# the program, unless the source is small: then the parser means that it is nested too deep.
import sys

sys.path[:] = [p for p in sys.path if p]  # not the working directory
import importlib.util, marshal, resource

limit = int(sys.argv[1])
small = 1 << 20  # which takes a quarter of a gigabyte at most
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
source, out = sys.stdin.buffer, sys.stdout.buffer
unchecked = (1).to_bytes(4, "little")


def read():
    size = source.read(4)
    return source.read(int.from_bytes(size, "big")) if size else None


while (path := read()) is not None:
    text = read()
    try:
        code = compile(text, path.decode(), "exec", dont_inherit=True, optimize=0)
        pyc = importlib.util.MAGIC_NUMBER + unchecked + importlib.util.source_hash(text) + marshal.dumps(code)
    except (SyntaxError, ValueError, RecursionError, OverflowError):
        pyc = b""
    except MemoryError:
        if len(text) > small:
            raise
        pyc = b""
    out.write(len(pyc).to_bytes(4, "big") + pyc)
    out.flush()
