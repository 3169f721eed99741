/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 32, LINES = 4 };

typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  const char* line;
  int full;
  int ended;
} Slot;

typedef struct {
  char buffer[LINE];
  const char* const* source;
  int next;
} Reader;

typedef struct {
  int rows;
  long total;
} Summary;

static Slot slot = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void rest(unsigned most) {
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  usleep((unsigned)(t.tv_nsec / 80) % most);
}

static const char* read_line(Reader* r) {
  if (r->next == LINES)
    return NULL;
  rest(400);
  snprintf(r->buffer, sizeof r->buffer, "%s", r->source[r->next++]); //@read
#ifdef FIXED
  return strdup(r->buffer);
#else
  return r->buffer; //@buffer
#endif
}

static void slot_put(Slot* s, const char* line) {
  pthread_mutex_lock(&s->mutex);
  while (s->full)
    pthread_cond_wait(&s->changed, &s->mutex);
  s->line = line; //@put
  s->full = 1;
  s->ended = line == NULL;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mutex);
}

static const char* slot_take(Slot* s) {
  const char* line;

  pthread_mutex_lock(&s->mutex);
  while (!s->full)
    pthread_cond_wait(&s->changed, &s->mutex);
  line = s->line; //@take
  s->full = 0; //@empty
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mutex);
  return line;
}

static void add_row(Summary* sum, const char* line) {
  char name[LINE];
  int amount = 0;

  rest(120);
  if (sscanf(line, "%31[a-z] %d", name, &amount) != 2) //@scan
    return;
  sum->rows++;
  sum->total += amount; //@add
}

static void* import(void* argument) {
  Summary* sum = argument;
  const char* line;

  while ((line = slot_take(&slot)) != NULL) { //@line
    add_row(sum, line);
#ifdef FIXED
    free((void*)line);
#endif
  }
  return NULL;
}

int main(void) {
  static const char* const file[LINES] = {"apples 10", "pears 200", "plums 3000", "figs 40000"};
  Reader reader = {.source = file};
  Summary sum = {0};
  pthread_t importer;
  const char* line;

  pthread_create(&importer, NULL, import, &sum);
  do {
    line = read_line(&reader);
    slot_put(&slot, line);
  } while (line);
  pthread_join(importer, NULL);
  printf("%d rows, total %ld\n", sum.rows, sum.total); //@print
  return 0;
}
