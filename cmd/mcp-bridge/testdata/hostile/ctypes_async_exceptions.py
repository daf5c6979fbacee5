# Throws exceptions into its own main thread from another, without end.
# want: {"status":"error|exit|timeout","exitCode":"!0","stdout":"before\n"}
# again: {"status":"error|exit|timeout","exitCode":"!0","stdout":"*"}
# timeout: 20
# next: {"status":"ok|error","stdout":"*"}
# alone
import ctypes
import threading


def throw():
    main = threading.main_thread().ident
    while True:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(ValueError))


print("before")
threading.Thread(target=throw, daemon=True).start()
while True:
    pass
