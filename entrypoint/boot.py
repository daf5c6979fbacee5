import gc
gc.disable()
import os,sys
if sys.version_info<(3,10):sys.exit("mcp-bridge guest: its Python is %d.%d, and 3.10 or newer is needed"%sys.version_info[:2])
def take(n):
 b=bytearray(n)
 v=memoryview(b)
 while v:
  c=os.readv(0,[v])
  if not c:sys.exit("mcp-bridge guest: stdin ended before the whole source had come; see why the bridge closed it")
  v=v[c:]
 return b
n=b""
while n[-1:]!=b"\n":n+=take(1)
boot,sources,code=map(int,n.split())
g={"__name__":"guest.boot"}
exec(compile(take(boot),"<guest>/boot.py","exec"),g)
g["start"](take(sources),take(code))
