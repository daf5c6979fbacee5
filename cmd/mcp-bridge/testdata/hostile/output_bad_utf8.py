# Writes bytes that are no UTF-8, overlong forms and a sequence that is cut by the end: each is replaced, none is lost.
# want: {"status":"ok","stdout":"a\ufffdb\ufffd\ufffdc\ufffd"}
import os

written = os.write(1, b"a\xffb\xc0\xafc\xe2\x82")
