# Tries to take pid 1's limits, priority, processors and scheduling from it.
# want: {"status":"ok","stdout":"refused\nrefused\nrefused\nrefused\nrefused\n"}
import os
import resource

for attempt in (
    lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3)),
    lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
    lambda: os.setpriority(os.PRIO_PGRP, 0, 19),
    lambda: os.sched_setaffinity(1, {0}),
    lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)),
):
    try:
        attempt()
        print("done")
    except PermissionError:
        print("refused")
