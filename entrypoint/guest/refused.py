"""Why the supervisor doesn't do what it is asked to do with a file."""


class Refused(Exception):
    """A file can't be had: a code, and a sentence."""
