package wheels

import (
	"slices"
	"strings"
)

// IsStandard reports whether a package's name is that of a module which comes with Python.
func IsStandard(name string) bool {
	_, is := slices.BinarySearch(standard, strings.ReplaceAll(Normalize(name), "-", "_"))
	return is
}

// standard are the modules of Python 3.13 that code imports by name (sys.stdlib_module_names), in
// the order of BinarySearch.
var standard = strings.Fields(`
abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 cProfile
calendar cmath cmd code codecs codeop collections colorsys compileall concurrent
configparser contextlib contextvars copy copyreg csv ctypes curses dataclasses datetime dbm
decimal difflib dis doctest email encodings ensurepip enum errno faulthandler fcntl filecmp
fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob
graphlib grp gzip hashlib heapq hmac html http imaplib importlib inspect io ipaddress
itertools json keyword linecache locale logging lzma mailbox marshal math mimetypes mmap
modulefinder multiprocessing netrc ntpath nturl2path numbers opcode operator optparse os
pathlib pdb pickle pickletools pkgutil platform plistlib poplib posix posixpath pprint
profile pstats pty pwd py_compile pyclbr pydoc pyexpat queue quopri random re readline
reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal
site smtplib socket socketserver sqlite3 sre_compile sre_constants sre_parse ssl stat
statistics string stringprep struct subprocess symtable sys sysconfig syslog tabnanny
tarfile tempfile termios textwrap threading time timeit tkinter token tokenize tomllib trace
traceback tracemalloc tty turtle types typing unicodedata unittest urllib uuid venv warnings
wave weakref webbrowser wsgiref xml xmlrpc zipapp zipfile zipimport zlib zoneinfo`)
