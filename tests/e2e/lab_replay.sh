#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A run in the lab is repeated without the world outside: no server, no other process, the same random numbers.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
programs=$ETCH_SOURCE/tests/programs/lab

# A server that says three lines to each client, and writes its port into ./port.
cat >server.py <<'P'
import os, socket, threading
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(50)
with open("port.new", "w") as f:
    f.write(str(listening.getsockname()[1]))
os.rename("port.new", "port")
def serve(client):
    while client.recv(100):
        pass
    for i in range(3):
        client.sendall(b"answer %d\n" % i)
    client.close()
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
P
start_server() {
  rm -f port
  python3 server.py &
  server=$!
  until [ -s port ]; do sleep 0.05; done
}
stop_server() {
  kill "$server"
  wait "$server" 2>/dev/null || true
}

"$ETCH" cc -O0 -g -pthread "$programs/client.c" -o client
start_server
for how in recv poll select epoll read; do
  expect 0 "$ETCH" explore --no-cause -o $how.etch ./client "$(cat port)" $how
  has out "SIGABRT"
  has out "answers from outside"
  has out "repeated   3 of 3"
done
"$ETCH" cc -O2 -g -pthread "$programs/client.c" -o client2
expect 0 "$ETCH" explore --no-cause -o optimised.etch ./client2 "$(cat port)" recv
printf '# the server is there in each replay\nsockets repeat\nprocesses record\n' >policy
expect 0 "$ETCH" explore --no-cause --input-policy policy -o live.etch ./client "$(cat port)" recv
stop_server

# The server is gone.
for how in recv poll select epoll read optimised; do
  expect 0 "$ETCH" replay --times 10 $how.etch
  has out "10 of 10 times the same run"
  grep -o 'total.*' out | sort -u >numbers
  [ "$(wc -l <numbers)" -eq 1 ] || fail "$how: not the same numbers in each run"
done
expect 1 "$ETCH" replay live.etch
has out "not the same: exit status 7"

# Input of another process through a pipe, random numbers, the process number.
cat >pipe.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>
static int ends[2], total;
static void *reader(void *unused)
{
    char c;
    while (read(ends[0], &c, 1) == 1) { int was = total; total = was + c; }
    return unused;
}
int main(void)
{
    unsigned char salt;
    pthread_t t;
    pid_t child;
    getrandom(&salt, 1, 0);
    if (pipe(ends) < 0) return 2;
    child = fork();
    if (child == 0) {
        for (int i = 0; i < 5; i++) { char c = (char)(getpid() % 7 + 1); if (write(ends[1], &c, 1) != 1) _exit(1); }
        _exit(0);
    }
    close(ends[1]);
    pthread_create(&t, NULL, reader, NULL);
    for (int i = 0; i < 5; i++) { int was = total; total = was + salt; }
    waitpid(child, NULL, 0);
    pthread_join(t, NULL);
    printf("total %d salt %d child %d own %d\n", total, salt, (int)child, (int)getpid());
    fflush(stdout);
    abort();
}
C
"$ETCH" cc -O1 -g -pthread pipe.c -o pipe
expect 0 "$ETCH" explore --no-cause -o pipe.etch ./pipe
has out "repeated   3 of 3"
expect 0 "$ETCH" replay --times 10 pipe.etch
[ "$(grep -o 'total.*' out | sort -u | wc -l)" -eq 1 ] || fail "pipe: not the same numbers in each run"
checks=$((checks + 1))

# std::random_device asks the CPU.
cat >device.cc <<'C'
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
int main()
{
    std::random_device device;
    unsigned number = device();
    std::thread t([&] { number ^= device(); });
    t.join();
    std::printf("number %u\n", number);
    std::fflush(stdout);
    std::abort();
}
C
"$ETCH" c++ -std=c++17 -O2 -g -pthread device.cc -o device
expect 0 "$ETCH" explore --no-cause -o device.etch ./device
expect 0 "$ETCH" replay --times 10 device.etch
[ "$(grep -c 'number' out)" -eq 10 ] && [ "$(grep 'number' out | sort -u | wc -l)" -eq 1 ] || fail "not the same random number"
checks=$((checks + 1))

# A wrong policy has an answer in words.
echo 'sockets sometimes' >policy
expect 1 "$ETCH" explore --input-policy policy ./client 1 recv
has err "line 1 of the input policy is not understood"
expect 1 "$ETCH" explore --input-policy nothing ./client 1 recv
has err "cannot read nothing"
done_checking
