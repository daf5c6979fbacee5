# Overwrites, deletes and patches the proxies of the servers, and the types they are made of.
# want: {"status":"ok","stdout":"broken\nafter\n"}
# again: {"status":"error","stdout":"","calls":0}
# next: {"status":"error","stdout":"","calls":0}
print("before") if False else None
kind = type(mcp_shop)
for name in ("__getattr__", "__call__", "__getitem__", "__dir__"):
    try:
        setattr(kind, name, lambda *args: 1 / 0)
    except (TypeError, AttributeError):
        pass
try:
    print(mcp_shop.no_such_tool)
except Exception:
    print("broken")
mcp_servers.clear() if hasattr(mcp_servers, "clear") else None
del mcp_shop
print("after")
