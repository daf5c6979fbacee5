# Sends calls with NaN, infinities and half of a surrogate pair, in their raw form.
# want: {"status":"ok","stdout":"validation_error\nvalidation_error\nvalidation_error\n","calls":0}
import json
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for call, value in enumerate((b"NaN", b"-Infinity", b"1e999"), 1):
    os.write(link, b'{"type":"tool_call","callId":"%d","providerName":"shop","safeToolName":"echo","input":{"text":%s}}\n' % (call, value))
    print(json.loads(os.read(link, 1 << 16))["error"]["code"])
