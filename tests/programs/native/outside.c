/* SPDX-License-Identifier: MIT */
/* outside: libraries and the kernel use a struct on the heap for the program. Each line that has them do so says in a
 * comment by which name a test looks for it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct box {
    long before;
    char text[8];
};

void use_told(char *text, long n);
void use_untold(char *text, long n);
void use_deep(char *text, long n);

static const char words[] = "seventy";
static volatile size_t all = sizeof(words); /* a copy of known length needs no library */

__attribute__((noinline)) static void fill(struct box *box)
{
    __asm__ volatile(".globl the_site\nthe_site: movq %1, 8(%0)" : : "D"(box), "S"(1L) : "memory");
}

__attribute__((noinline)) static void copy(char *to)
{
    memcpy(to, words, all); /* :memcpy */
    __asm__ volatile("");   /* the call is not the last thing done here */
}

static void *copy_in_thread(void *box)
{
    copy(((struct box *)box)->text);
    return NULL;
}

int main(void)
{
    struct box *box = malloc(sizeof(*box));
    pthread_t thread;
    int ends[2];

    if (!box || pipe(ends) < 0 || write(ends[1], words, all) < 0)
        return 1;
    fill(box);
    copy(box->text);
    pthread_create(&thread, NULL, copy_in_thread, box);
    pthread_join(thread, NULL);
    strncpy(box->text, words, all); /* :strncpy */
    if (read(ends[0], box->text, all) < 0) /* :read */
        return 1;
    use_told(box->text, 7); /* :told */
    use_untold(box->text, 8);
    use_deep(box->text, 9);
    free(box); /* :free */
    puts("done");
    return 0;
}
