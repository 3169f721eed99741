// SPDX-License-Identifier: MIT
// A thread's argument comes from the call that starts the thread.
#include <pthread.h>
struct job {
    int divisor;
    int id;
};
static void *run(void *arg)
{
    struct job *job = arg;                        //@in
    int d = job->divisor;                         //@in reads job->divisor
    return (void *)(long)(100 / d);               //@fail
}
int main(int argc, char **argv)
{
    pthread_t t;
    struct job job = {.id = 1};                   //@in
    job.divisor = argc - 1;                       //@in
    (void)argv;
    pthread_create(&t, NULL, run, &job);          //@in
    job.id = 3;
    pthread_join(t, NULL);
    return 0;
}
