/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct Session {
  int id;
  int beats;
} Session;

typedef struct Timer {
  long due;
  Session* session;
  struct Timer* next;
} Timer;

typedef struct {
  pthread_mutex_t mutex;
  Timer* waiting;
  long now;
  int fired;
} Timers;

static Timers timers = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void nap(unsigned most) {
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  usleep((unsigned)(t.tv_nsec / 128) % most);
}

static Timer* timer_add(Timers* ts, Session* session, long due) {
  Timer* t = calloc(1, sizeof *t);

  t->session = session;
  t->due = due;
  pthread_mutex_lock(&ts->mutex);
  t->next = ts->waiting;
  ts->waiting = t;
  pthread_mutex_unlock(&ts->mutex);
  return t;
}

static void session_close(Timers* ts, Session* session) {
  pthread_mutex_lock(&ts->mutex);
  for (Timer* t = ts->waiting; t; t = t->next)
    if (t->session == session) //@belongs
      t->session = NULL; //@forget
  pthread_mutex_unlock(&ts->mutex);
}

static Timer* next_due(Timers* ts) {
  for (Timer* t = ts->waiting; t; t = t->next)
    if (t->session && t->due <= ts->now) //@due
      return t; //@pick
  return NULL;
}

static void fire(Timers* ts, Timer* t) {
  t->session->beats++; //@beat
  t->due = ts->now + 3;
  ts->fired++;
}

static void timers_tick(Timers* ts) {
  Timer* t;

  pthread_mutex_lock(&ts->mutex);
  ts->now++;
  while ((t = next_due(ts)) != NULL) { //@next
#ifndef FIXED
    pthread_mutex_unlock(&ts->mutex); //@unlock
    nap(300);
    pthread_mutex_lock(&ts->mutex);
#endif
    fire(ts, t); //@fire
  }
  pthread_mutex_unlock(&ts->mutex);
}

static void* ticker(void* argument) {
  for (int i = 0; i < 8; i++) {
    nap(300);
    timers_tick(argument);
  }
  return NULL;
}

static void* visitor(void* argument) {
  nap(2200);
  session_close(&timers, argument); //@close
  return NULL;
}

int main(void) {
  Session sessions[3] = {{1, 0}, {2, 0}, {3, 0}};
  Timer* made[3];
  pthread_t ticking, leaving;

  for (int i = 0; i < 3; i++)
    made[i] = timer_add(&timers, &sessions[i], i + 1);
  pthread_create(&ticking, NULL, ticker, &timers);
  pthread_create(&leaving, NULL, visitor, &sessions[1]);
  pthread_join(ticking, NULL);
  pthread_join(leaving, NULL);
  for (int i = 0; i < 3; i++)
    free(made[i]);
  printf("%s\n", timers.fired > 3 ? "ticked" : "slow");
  return 0;
}
