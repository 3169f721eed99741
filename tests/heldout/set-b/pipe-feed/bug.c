/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FEEDS = 2, ITEMS = 4 };

typedef struct {
  int value;
  int weight;
} Item;

typedef struct {
  int out;
  unsigned seed;
  int sent;
  int rejected;
} Feed;

typedef struct {
  int in;
  long sum;
  int count;
} Collector;

static int make_item(Feed* f, int i, Item* item) {
  int roll = rand_r(&f->seed) % 25; //@roll

  item->value = i * 10 + roll;
  item->weight = roll;
  return roll == 0 ? -1 : 0; //@bad
}

static int send_item(Feed* f, const Item* item) {
  if (write(f->out, item, sizeof *item) != (ssize_t)sizeof *item)
    return -1;
  f->sent++;
  return 0;
}

static int feed_all(Feed* f) {
  for (int i = 0; i < ITEMS; i++) {
    Item item;

    if (make_item(f, i, &item) != 0) { //@reject
      f->rejected++;
      return -1; //@give_up
    }
    if (send_item(f, &item) != 0)
      return -1;
  }
  return 0;
}

static void* feed_main(void* argument) {
  Feed* f = argument;

#ifdef FIXED
  feed_all(f);
#else
  if (feed_all(f) != 0) //@failed
    return f; //@leave
#endif
  close(f->out);
  return NULL;
}

static void* collect(void* argument) {
  Collector* c = argument;
  Item item;

  while (read(c->in, &item, sizeof item) == (ssize_t)sizeof item) { //@read
    c->sum += (long)item.value * item.weight;
    c->count++;
  }
  close(c->in);
  return NULL;
}

static int start_feed(Feed* f, int out, unsigned seed, pthread_t* thread) {
  memset(f, 0, sizeof *f);
  f->out = dup(out); //@dup
  f->seed = seed;
  return pthread_create(thread, NULL, feed_main, f);
}

int main(void) {
  Feed feeds[FEEDS];
  Collector collector = {0};
  pthread_t threads[FEEDS], collecting;
  struct timespec now;
  int ends[2], rejected = 0;

  if (pipe(ends) != 0)
    return 1;
  clock_gettime(CLOCK_REALTIME, &now);
  collector.in = ends[0];
  pthread_create(&collecting, NULL, collect, &collector);
  for (unsigned i = 0; i < FEEDS; i++)
    if (start_feed(&feeds[i], ends[1], (unsigned)(now.tv_nsec / 1000) + 7919u * i, &threads[i]) != 0)
      return 1;
  close(ends[1]);
  for (int i = 0; i < FEEDS; i++) {
    pthread_join(threads[i], NULL);
    rejected += feeds[i].rejected;
  }
  pthread_join(collecting, NULL); //@join
  printf("%d items, %d rejected\n", collector.count, rejected);
  return 0;
}
