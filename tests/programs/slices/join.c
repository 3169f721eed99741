// SPDX-License-Identifier: MIT
// A join gives what the joined thread returned; other threads' results are not in.
#include <pthread.h>
static void *zero(void *arg)
{
    long n = (long)arg;                         //@in
    return (void *)(n - 1);                     //@in
}
static void *five(void *arg)
{
    (void)arg;
    return (void *)5;
}
int main(int argc, char **argv)
{
    pthread_t a, b;
    void *got, *other;
    pthread_create(&a, NULL, zero, (void *)(long)argc);  //@in
    pthread_create(&b, NULL, five, NULL);
    pthread_join(a, &got);                      //@in
    pthread_join(b, &other);
    (void)argv, (void)other;
    return (int)(10 / (long)got);               //@fail
}
