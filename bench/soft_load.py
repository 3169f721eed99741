# SPDX-License-Identifier: MIT
# soft_load.py FOLDER N SERVER OPTION...: starts memcached on a socket in FOLDER, and has four clients send it N requests each.
# Prints the processor time of the server alone on standard error, for soft.sh: "server USER SYSTEM".
import os, resource, socket, subprocess, sys, threading, time

folder, n, server = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
path = os.path.join(folder, "socket.%d" % os.getpid())
child = subprocess.Popen(server + ["-s", path])


def connect():
    for _ in range(6000):
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path)
            return s
        except OSError:
            s.close()
            time.sleep(0.01)
    sys.exit("the server does not answer")


def load(k):
    s = connect()
    with s.makefile("rb") as answers:
        for start in range(0, n, 50):
            part = range(start, min(start + 50, n))
            s.sendall(b"".join(b"set k%d-%d 0 0 20\r\n%020d\r\nget k%d-%d\r\nget none%d\r\n" % (k, i % 5000, i, k, i % 5000, i) for i in part))
            for _ in part:
                got = [answers.readline() for _ in range(5)]
                if got[0] != b"STORED\r\n" or got[3] != b"END\r\n" or got[4] != b"END\r\n":
                    sys.exit("wrong answer: %r" % got)
    s.close()


clients = [threading.Thread(target=load, args=(k,)) for k in range(4)]
for c in clients:
    c.start()
for c in clients:
    c.join()
s = connect()
s.sendall(b"shutdown\r\n")
while s.recv(4096):
    pass
status = child.wait()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("server %.4f %.4f" % (used.ru_utime, used.ru_stime), file=sys.stderr)
sys.exit(status)
