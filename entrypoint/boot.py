import gc
gc.disable()
import os,sys
def take(n):
 b=bytearray(n)
 v=memoryview(b)
 while v:
  c=os.readv(0,[v])
  if not c:sys.exit("mcp-bridge guest: stdin ended before the whole source had come; see why the bridge closed it")
  v=v[c:]
 return b
def line():
 n=b""
 while n[-1:]!=b"\n":n+=take(1)
 return n
n=line()
if n==b"\n":
 os.write(1,n)
 n=line()
if sys.version_info<(3,10):sys.exit("mcp-bridge guest: its Python is %d.%d, and 3.10 or newer is needed"%sys.version_info[:2])
boot,sources,code=map(int,n.split())
g={"__name__":"guest.boot"}
exec(compile(take(boot),"<guest>/boot.py","exec"),g)
g["start"](take(sources),take(code))
