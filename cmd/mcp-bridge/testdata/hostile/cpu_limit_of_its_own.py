# Gives itself a second of processor time.
# want: {"status":"exit","signal":24,"stdout":"before\n"}
# alone
import resource

print("before")
resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
while True:
    pass
