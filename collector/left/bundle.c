/* SPDX-License-Identifier: MIT */
/* A bundle of one process that left rings; see ring_process.h. */
#include "collector/left/failure.h"
#include "collector/left/words.h"
#include "collector/privacy.h"
#include "collector/ring_process.h"
#include "collector/session/host.h"
#include "collector/session/recorder.h"
#include "collector/soft/pool_files.h"

#include <stdlib.h>
#include <string.h>

/* ---- Records ---- */

static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void write_program(struct etch_recorder *r, const struct etch_soft_pool *pool,
                          const struct etch_ring_process *process)
{
    Etch__Program program = ETCH__PROGRAM__INIT;
    struct etch_left_words words;

    etch_left_words_open(&words, pool);
    program.etch_version = text_of(ETCH_VERSION);
    program.source = ETCH__SOURCE__SOURCE_SOFT;
    program.exe = text_of(words.exe);
    program.cwd = text_of(words.cwd);
    program.argv = (char **)(uintptr_t)words.arguments;
    program.n_argv = words.n_arguments;
    program.build_id.data = (uint8_t *)(uintptr_t)process->build_id;
    program.build_id.len = process->build_id_size;
    program.pid = process->pid;
    program.start_unix_ns = process->start_unix_ns;
    program.start_tsc = process->start_tsc;
    etch_recorder_write(r, ETCH__RECORD__BODY_PROGRAM, &program);
}

static void write_note_losses(struct etch_recorder *r, const struct etch_soft_pool *pool)
{
    struct etch_left_words words;

    etch_left_words_open(&words, pool);
    etch_sink_lose(&r->sink, ETCH__LOSS_CAUSE__LOSS_LIMIT, 0, words.cut, "arguments of the program were not noted");
    etch_sink_lose(&r->sink, ETCH__LOSS_CAUSE__LOSS_LIMIT, 0, pool->modules_lost,
                   "build-ids of libraries were not noted");
    if (pool->n_deaths > ETCH_SOFT_DEATHS)
        etch_sink_lose(&r->sink, ETCH__LOSS_CAUSE__LOSS_LIMIT, 0, pool->n_deaths - ETCH_SOFT_DEATHS,
                       "failures of child processes were not noted");
}

static struct etch_soft_stand_in stand_in(const struct etch_ring_process *process,
                                          const struct etch_ring_bundle *options)
{
    return (struct etch_soft_stand_in){options->program, process->build_id, process->build_id_size};
}

/* Nobody knows which of several threads made the kernel look for memory. */
static void write_kill(struct etch_recorder *r, const struct etch_ring_process *process)
{
    Etch__Failure failure = ETCH__FAILURE__INIT;

    failure.kind = ETCH__FAILURE_KIND__FAILURE_SIGNAL;
    failure.signal = process->status;
    failure.cause = ETCH__FAILURE_CAUSE__CAUSE_NO_MEMORY;
    failure.pid = process->pid;
    failure.tid = process->threads == 1 ? process->pid : 0;
    failure.message = text_of(process->no_group_memory
                                  ? "out of memory: the kernel's log says that the memory cgroup was at its limit"
                                  : "out of memory: the kernel's log says that the machine had none left");
    etch_recorder_write(r, ETCH__RECORD__BODY_FAILURE, &failure);
}

static void write_failure(struct etch_recorder *r, struct etch_privacy *privacy, const struct etch_soft_pool *pool,
                          const struct etch_ring_process *process, const struct etch_ring_bundle *options)
{
    const struct etch_soft_stand_in program = stand_in(process, options);
    const struct etch_soft_death *death = etch_left_death_of(pool, process->pid);
    struct etch_left_failure failure;

    if (options->failure) {
        Etch__Failure timed = *options->failure; /* a core does not say when */

        timed.tsc = !timed.tsc && death ? death->tsc : timed.tsc;
        etch_recorder_write(r, ETCH__RECORD__BODY_FAILURE, &timed);
        return;
    }
    if (process->end == ETCH_RING_NO_MEMORY)
        write_kill(r, process);
    if (process->end != ETCH_RING_SIGNALLED || !death)
        return;
    etch_left_failure_make(&failure, pool, death, &program, false);
    etch_privacy_count(privacy)->stack_words += failure.masked_words;
    etch_recorder_write(r, ETCH__RECORD__BODY_FAILURE, &failure.record);
    etch_left_failure_release(&failure);
}

/* Without an outcome the end is not known. */
static void write_outcome(struct etch_recorder *r, const struct etch_soft_pool *pool,
                          const struct etch_ring_process *process, const Etch__Failure *elsewhere)
{
    const struct etch_soft_death *death = etch_left_death_of(pool, process->pid);
    Etch__Outcome outcome = ETCH__OUTCOME__INIT;

    if (elsewhere || process->end == ETCH_RING_SIGNALLED || process->end == ETCH_RING_NO_MEMORY) {
        outcome.how_case = ETCH__OUTCOME__HOW_SIGNAL;
        outcome.signal = elsewhere ? elsewhere->signal : process->status;
        outcome.end_tsc = elsewhere && elsewhere->tsc ? elsewhere->tsc : death ? death->tsc : 0;
    } else if (process->end == ETCH_RING_EXITED) {
        outcome.how_case = ETCH__OUTCOME__HOW_EXIT_STATUS;
        outcome.exit_status = process->status;
        outcome.end_tsc = process->child ? 0 : pool->end_tsc;
    } else {
        return;
    }
    etch_recorder_write(r, ETCH__RECORD__BODY_OUTCOME, &outcome);
}

/* ---- The bundle ---- */

struct making {
    const struct etch_ring_process *process;
    const struct etch_ring_bundle *options;
    struct etch_recorder recorder;
    struct etch_privacy *privacy;
    struct etch_soft_summary *summary;
    struct etch_soft_pool *pool;
    bool found;
};

static void take_file(void *context, const char *name, int fd)
{
    struct making *m = context;
    struct etch_soft_pools pools = {.sink = &m->recorder.sink,
                                    .summary = m->summary,
                                    .only = m->options->family ? 0 : m->process->pid,
                                    .program = stand_in(m->process, m->options)};
    bool other;

    if (fd < 0 || m->found || strcmp(name, m->process->file) != 0 || etch_soft_pool_read(fd, m->pool, &other))
        return;
    m->found = true;
    write_program(&m->recorder, m->pool, m->process);
    if (!m->process->threads) /* without a ring nobody else writes them */
        etch_soft_write_images(&pools, m->pool, m->process->pid);
    etch_soft_pool_take(&pools, fd);
    write_note_losses(&m->recorder, m->pool);
    write_failure(&m->recorder, m->privacy, m->pool, m->process, m->options);
    write_outcome(&m->recorder, m->pool, m->process, m->options->failure);
}

static int write_bundle(struct making *m, struct etch_error *err)
{
    m->pool = malloc(sizeof(*m->pool));
    if (!m->pool)
        return etch_error_no_memory(err);
    if (etch_host_write(&m->recorder, err) < 0 || etch_soft_each_file(m->options->folder, take_file, m, err) < 0)
        return -1;
    if (!m->found)
        return etch_error_set(err, "%s in %s is gone", m->process->file, m->options->folder);
    etch_recorder_finish(&m->recorder);
    return etch_recorder_check(&m->recorder, err);
}

int etch_ring_process_bundle(const struct etch_ring_process *process, const struct etch_ring_bundle *options,
                             struct etch_soft_summary *summary, struct etch_error *err)
{
    struct making m = {.process = process, .options = options, .summary = summary};
    struct etch_record_summary written = {0};
    int status;

    memset(summary, 0, sizeof(*summary));
    if (etch_privacy_open(&m.privacy, options->policy, false, err) < 0)
        return -1;
    etch_recorder_init(&m.recorder, 0, &written);
    status = etch_recorder_create(&m.recorder, options->output, m.privacy, err);
    if (status == 0) {
        status = write_bundle(&m, err);
        etch_recorder_close(&m.recorder, status == 0);
        summary->losses = written.losses;
        memcpy(summary->lost, written.lost, sizeof(summary->lost));
    }
    etch_privacy_free(m.privacy);
    free(m.pool);
    return status;
}
