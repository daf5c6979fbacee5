# Tries to have the kernel prefer pid 1 when memory ends, and itself spared.
# want: {"status":"ok","stdout":"refused\nrefused\n"}
for pid, score in ((1, 1000), ("self", -1000)):
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write(str(score))
        print("done")
    except OSError:
        print("refused")
