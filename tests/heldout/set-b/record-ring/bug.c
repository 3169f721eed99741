/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RING = 64, HEADER = 2, LARGEST = 30 };

typedef struct {
  unsigned char bytes[RING];
  int head; /* the oldest record */
  int used;
  int records;
  int dropped;
} Ring;

typedef struct {
  int records;
  int bytes;
} Count;

static unsigned char get(const Ring* r, int at) {
  return r->bytes[at % RING]; //@get
}

static void put(Ring* r, int at, int value) {
  r->bytes[at % RING] = (unsigned char)value; //@put
}

static int record_size(const Ring* r, int at) {
  return HEADER + get(r, at); //@size
}

static void drop_oldest(Ring* r) {
  int size = record_size(r, r->head);

  r->head = (r->head + size) % RING;
  r->used -= size; //@less
  r->records--;
  r->dropped++;
}

static void make_room(Ring* r, int size) {
#ifdef FIXED
  while (r->used + size > RING)
#else
  if (r->used + size > RING) //@room
#endif
    drop_oldest(r); //@drop
}

static void append(Ring* r, int tag, const char* text) {
  int length = (int)strlen(text);
  int at;

  make_room(r, HEADER + length); //@make
  at = r->head + r->used; //@at
  put(r, at++, length);
  put(r, at++, tag);
  for (int i = 0; i < length; i++)
    put(r, at++, text[i]);
  r->used += HEADER + length; //@more
  r->records++;
}

static Count walk(const Ring* r) {
  Count count = {0, 0};
  int at = r->head;

  for (int i = 0; i < r->records; i++) { //@each
    int size = record_size(r, at); //@next

    count.bytes += size; //@sum
    count.records++;
    at += size;
  }
  assert(count.bytes <= RING); //@check
  return count;
}

static Count fill(Ring* r, unsigned* seed, int records) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
  char text[LARGEST + 1];
  Count count = {0, 0};

  for (int i = 0; i < records; i++) {
    int length = 8 + rand_r(seed) % 10; //@draw

    snprintf(text, sizeof text, "%.*s", length, letters + i);
    append(r, i, text);
    count = walk(r); //@walk
  }
  return count;
}

int main(int argc, char** argv) {
  static Ring ring;
  struct timespec now;
  unsigned seed;
  Count count;

  clock_gettime(CLOCK_REALTIME, &now);
  seed = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)(now.tv_nsec / 1000);
  count = fill(&ring, &seed, 8);
  printf("%d records in %d bytes, %d dropped\n", count.records, count.bytes, ring.dropped);
  return 0;
}
