# Takes from itself what the guest needs at its end: memory, files, descriptors. It prints, ends, and is told as it was.
# want: {"status":"ok","stdout":"before\nafter\n"}
# next: {"status":"error","stdout":"","calls":0}
import resource

print("before")
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
print("after")
