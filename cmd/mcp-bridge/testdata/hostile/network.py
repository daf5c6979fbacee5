# Looks for a way out: names, addresses, abstract sockets, the machine around a VM.
# want: {"status":"ok","stdout":"no name\nno way\nno way\nno socket\n"}
import socket

try:
    socket.getaddrinfo("example.com", 443)
except OSError:
    print("no name")
for address in (("1.1.1.1", 53), ("169.254.169.254", 80)):
    try:
        socket.create_connection(address, 1)
    except OSError:
        print("no way")
try:
    socket.socket(40, socket.SOCK_STREAM)
except OSError:
    print("no socket")
