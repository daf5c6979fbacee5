# Raises what can't be told: its __str__, __repr__ and notes raise, its name is no name, its cause is itself.
# want: {"status":"error","exitCode":1,"error":{"type":"*","message":"*no message*"}}


class Meta(type):
    @property
    def __module__(cls):
        raise KeyboardInterrupt


class Odd(Exception, metaclass=Meta):
    def __str__(self):
        raise SystemExit(0)

    __repr__ = __str__
    __notes__ = property(__str__)


odd = Odd()
odd.__cause__ = odd
raise odd
