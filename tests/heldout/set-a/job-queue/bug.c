/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_JOBS 8

enum job_state { JOB_FREE, JOB_QUEUED, JOB_RUNNING, JOB_DONE };

struct job {
    int id;
    enum job_state state;
    int (*run)(struct job *job);
    long argument;
    long result;
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job jobs[MAX_JOBS];
    int closed;
    int completed;
};

static struct queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pause_us(unsigned most)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    usleep((unsigned)(now.tv_nsec / 100) % most);
}

static int square(struct job *job)
{
    job->result = job->argument * job->argument;
    return 0;
}

static int negate(struct job *job)
{
    job->result = -job->argument;
    return 0;
}

static void submit(struct queue *q, int id, int (*run)(struct job *), long argument)
{
    pthread_mutex_lock(&q->lock);
    for (int i = 0; i < MAX_JOBS; i++) {
        struct job *job = &q->jobs[i];

        if (job->state != JOB_FREE)
            continue;
        job->id = id;
        job->run = run;
        job->argument = argument;
        job->state = JOB_QUEUED;
        break;
    }
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static void retire(struct job *job)
{
    memset(job, 0, sizeof *job); //@reset
}

static int cancel(struct queue *q, int id)
{
    int found = 0;

    pthread_mutex_lock(&q->lock);
    for (int i = 0; i < MAX_JOBS; i++) {
        struct job *job = &q->jobs[i];

#ifdef FIXED
        if (job->state != JOB_QUEUED || job->id != id)
#else
        if (job->state == JOB_FREE || job->id != id) //@match
#endif
            continue;
        retire(job); //@retire
        found = 1;
    }
    pthread_mutex_unlock(&q->lock);
    return found;
}

static struct job *next_job(struct queue *q)
{
    struct job *chosen = NULL;

    pthread_mutex_lock(&q->lock);
    for (;;) {
        for (int i = 0; i < MAX_JOBS; i++)
            if (q->jobs[i].state == JOB_QUEUED && (!chosen || q->jobs[i].id < chosen->id))
                chosen = &q->jobs[i]; //@choose
        if (chosen || q->closed)
            break;
        pthread_cond_wait(&q->changed, &q->lock);
    }
    if (chosen)
        chosen->state = JOB_RUNNING; //@running
    pthread_mutex_unlock(&q->lock);
    return chosen;
}

static void *worker(void *arg)
{
    struct queue *q = arg;
    struct job *job;

    while ((job = next_job(q)) != NULL) { //@next
        pause_us(400);
        job->run(job); //@call
        pthread_mutex_lock(&q->lock);
        q->completed++;
        retire(job);
        pthread_mutex_unlock(&q->lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int cancelled;

    pthread_create(&thread, NULL, worker, &queue);
    for (int id = 1; id <= 4; id++)
        submit(&queue, id, id % 2 ? square : negate, 10 * id);
    pause_us(2500);
    cancelled = cancel(&queue, 3); //@cancel
    pthread_mutex_lock(&queue.lock);
    queue.closed = 1;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    pthread_join(thread, NULL);
    printf("%d jobs done, %d cancelled\n", queue.completed, cancelled);
    return 0;
}
