# Gives tools objects that change while they are looked at, end the process from __iter__, or pretend to be a str.
# want: {"status":"ok","stdout":"before\n*\n*\n"}
import os


class Liar(str):
    __class__ = dict

    def encode(self, *args):
        return b'"}}\n{"type":"done"}\n'

    def isascii(self):
        return True


class Items(dict):
    def items(self):
        while True:
            yield "a", self


print("before")
for value in (Liar('"'), Items(a=1)):
    try:
        print(mcp_shop.echo(text=value) == '"')
    except Exception as e:
        print(type(e).__name__)
