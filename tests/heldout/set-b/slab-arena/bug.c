/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { CELLS = 32, CELL_SIZE = 24 };

typedef struct {
  int owner;
  char bytes[CELL_SIZE];
} Cell;

typedef struct {
  _Atomic uint32_t used;
  Cell cells[CELLS];
} Arena;

typedef struct {
  int id;
  const char* word;
  unsigned hash;
} Task;

static Arena arena;

static int lowest_clear(uint32_t bits) {
  for (int i = 0; i < CELLS; i++)
    if (!(bits & (UINT32_C(1) << i)))
      return i;
  return -1;
}

static Cell* arena_take(Arena* a, int owner) {
  for (;;) {
    uint32_t bits = atomic_load(&a->used); //@bits
    int index = lowest_clear(bits); //@lowest

    if (index < 0)
      return NULL;
#ifdef FIXED
    if (atomic_fetch_or(&a->used, UINT32_C(1) << index) & (UINT32_C(1) << index))
      continue;
#else
    atomic_fetch_or(&a->used, UINT32_C(1) << index); //@mark
#endif
    Cell* cell = &a->cells[index]; //@cell
    cell->owner = owner; //@owner
    memset(cell->bytes, 0, sizeof cell->bytes);
    return cell;
  }
}

static void arena_give(Arena* a, Cell* cell, int owner) {
  long index = cell - a->cells;

  assert(cell->owner == owner); //@check
  cell->owner = 0; //@clear
  atomic_fetch_and(&a->used, ~(UINT32_C(1) << index));
}

static unsigned digest(const char* text) {
  unsigned h = 2166136261u;

  while (*text)
    h = (h ^ (unsigned char)*text++) * 16777619u;
  return h;
}

static void* run_task(void* argument) {
  Task* task = argument;
  Cell* copy = arena_take(&arena, task->id); //@copy

  if (!copy)
    return NULL;
  for (size_t i = 0; task->word[i] && i + 1 < sizeof copy->bytes; i++)
    copy->bytes[i] = task->word[i];
  task->hash = digest(copy->bytes);
  arena_give(&arena, copy, task->id); //@give
  return NULL;
}

int main(void) {
  Task tasks[] = {{.id = 1, .word = "lantern"}, {.id = 2, .word = "harbour"}, {.id = 3, .word = "thistle"}};
  enum { TASKS = sizeof tasks / sizeof tasks[0] };
  pthread_t threads[TASKS];
  int hashed = 0;

  for (int i = 0; i < TASKS; i++)
    pthread_create(&threads[i], NULL, run_task, &tasks[i]);
  for (int i = 0; i < TASKS; i++) {
    pthread_join(threads[i], NULL);
    hashed += tasks[i].hash != 0;
  }
  printf("%d words hashed\n", hashed);
  return 0;
}
