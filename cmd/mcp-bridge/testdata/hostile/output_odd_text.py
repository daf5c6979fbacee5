# Prints NUL, line separators, direction marks, terminal escapes and half of a surrogate pair: text arrives as it was.
# want: {"status":"ok","stdout":"\u0000\u2028\u2029\u0085\u202e\ufeff\u001b[2J\\udcff|\n"}
print("\0\u2028\u2029\x85\u202e\ufeff\x1b[2J\udcff|")
