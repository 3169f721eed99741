/* SPDX-License-Identifier: MIT */
/* Private to runs/build*.c: a run that is being built from a recording, and the walk along one thread's steps. */
#ifndef ETCH_SKETCH_RUNS_BUILD_MODEL_H
#define ETCH_SKETCH_RUNS_BUILD_MODEL_H

#include "binary/symbols.h"
#include "decoder/steps.h"
#include "decoder/timeline.h"
#include "sketch/run_build.h"
#include "sketch/runs/trail.h"

#define DEPTH_MAX 4096u
#define IN_BLOCK_BITS 12
#define PAIRED 1024u    /* outcomes of branches that are combined with others */
#define HANDLERS_MAX 8u /* within each other */

/* Which place an address of the program is of. */
struct place_table {
    uint64_t start, end;
    uint32_t *place; /* by address; ETCH_NOWHERE: none */
    bool *begins;    /* a statement begins here */
};

struct frame {
    uint64_t return_address;
    uint32_t last; /* place executed last, in this call */
    uint32_t call; /* which of the thread's calls, from 1 */
};

/* A signal handler that is running. */
struct handler {
    uint64_t resume; /* the address at which the interrupted code goes on */
    uint32_t depth;
};

#define EXIT_FRAMES 32u

/* The last place at which a thread ran a statement that can have given the exit status. */
struct exit_point {
    uint64_t ip;          /* 0: nowhere */
    uint64_t block, last; /* its block's number, and its last instruction */
    uint32_t statement;
    uint32_t n, unkept;
    uint64_t frames[EXIT_FRAMES]; /* return addresses, innermost first; `unkept` more did not fit */
};

/* A step that is held back. */
struct held {
    struct etch_step step;
    size_t sizes; /* index into walk.held_sizes */
};

/* A synchronisation event whose call the steps can show: the recording's event number `at`. */
struct sync_call {
    uint64_t caller;
    size_t at;
    uint32_t tid;
};

struct sync_calls { /* an ETCH_ARRAY with a name */
    struct sync_call *v;
    size_t n, capacity;
};

/* One thread's walk. */
struct walk {
    bool begun; /* a thread is being walked; its tid may be any number */
    uint32_t tid;
    uint32_t thread;
    uint64_t block; /* steps so far */
    uint32_t depth, calls;
    struct frame frames[DEPTH_MAX];
    uint64_t too_deep;        /* calls beyond DEPTH_MAX: their frames are not kept */
    uint64_t unkept_handlers; /* signal handlers beyond HANDLERS_MAX: taken for the code that they interrupted */
    uint64_t early_handlers;  /* handlers that were too long to be held back */
    uint64_t unkept_frames;   /* of the stack at the end */
    uint64_t last_ip, last_program_ip;
    uint64_t went_from;    /* the jump or return that led to where no code is; 0: none did. A call has its frame */
    uint64_t last_outside; /* return address of its last call from the program to the outside */
    bool in_program;
    struct exit_point exits[3]; /* by how much the statement says */
    struct handler handlers[HANDLERS_MAX];
    uint32_t n_handlers;
    uint64_t
        expected; /* the next address without a signal: after a system call, or the interrupted instruction; 0: none */
    bool interrupted; /* the thread did not get to `expected` by itself */
    uint32_t *visit;  /* by place: its visit + 1 */
    size_t n_visit;
    size_t next_sync;                 /* of the recording's: the first that no step was found for yet */
    size_t next_access, next_outside; /* in the thread's list: of the program itself, of libraries */
    uint64_t newest[PAIRED / 64];     /* which outcomes are the newest of their branches, by index */
    uint64_t unpaired;                /* outcomes that had no room there */
    int pending_branch;               /* index of a branch whose first place after it is not known yet */
    bool lost;
    bool over;        /* it has failed */
    uint64_t last_lo; /* when the last block may have begun */
    enum etch_step_kind last_kind;
    enum etch_branch_kind last_branch; /* of the last block */
    /* The software recorder reports a signal handler before the code that it interrupted. The steps of the handler are
     * held back until an access shows where they belong. */
    ETCH_ARRAY(struct held) held;
    ETCH_ARRAY(uint8_t) held_sizes;
    uint32_t nesting;             /* calls from outside that the held steps are in; 0: the handler is complete */
    ETCH_ARRAY(uint32_t) creates; /* places of pthread_create, in order */
};

/* A watch that was set. */
struct watched {
    const Etch__Watch *watch;
    uint32_t variable, object;
    bool inner; /* found at an instruction of library code, which works for many lines: each knows it by its own name */
};

struct build {
    struct etch_run *run;
    struct etch_names *names;
    struct etch_recording *recording;
    const struct etch_run_options *options;
    struct etch_symbols *symbols;
    ETCH_ARRAY(struct place_table) tables;      /* of the program, and of its libraries */
    ETCH_ARRAY(const Etch__Operand *) operands; /* of the slice */
    ETCH_ARRAY(uint32_t) operand_places;        /* of each */
    struct etch_index by_address, by_global;    /* into operands */
    struct etch_index by_branch;                /* into the run's branches */
    uint64_t with[PAIRED][PAIRED / 64];         /* by outcome of a branch: the outcomes that it was paired with */
    struct sync_calls sync_sites;               /* by thread, call, and their order in the recording */
    struct sync_calls sync_turns;               /* by thread, and their order in the recording */
    ETCH_ARRAY(uint32_t) sync_places;           /* of each of the recording's events, as the walk found them */
    ETCH_ARRAY(struct watched) watched;         /* by id */
    const Etch__Image *image;                   /* of the program, the last one asked for */
    const Etch__Image *other;                   /* the last image asked for that is not of the program */
    uint32_t pid;                               /* of the process that is looked at; 0: not known */
    uint64_t bias;                              /* address in memory minus address in the file, of that image */
    uint64_t program_bias;                      /* the same of the program's own file */
    uint64_t exit_start, exit_end;              /* the code within which options->exits are */
    struct walk *walk;
    struct trail trail;                          /* of the thread that failed */
    bool nowhere;                                /* the failing thread went to where no code is, and died there */
    ETCH_ARRAY(struct etch_run_access) accesses; /* by thread, in program order */
    ETCH_ARRAY(uint32_t) from;                   /* index in the recording */
    ETCH_ARRAY(struct etch_mark) marks;          /* stamps of a recorder that are before accesses */
    ETCH_ARRAY(struct etch_mark_tie) ties;
    struct {
        size_t first, n;
    } *of_thread; /* into accesses, by thread; a thread that only the steps know of has none */
    size_t n_of_thread;
    bool failing; /* the run is */
    bool failed;  /* memory was short */
};

/* As the caller says, or else as recorded. */
bool etch_build_is_failing(const struct build *b);

/* True if the software recorder recorded the steps: only the program's own code has steps. */
bool etch_build_is_soft(const struct build *b);

/* The number of a thread. A new thread gets a number. ETCH_NOWHERE: memory is short. */
uint32_t etch_build_thread(struct build *b, uint32_t tid);

/* ---- The program's addresses ---- */

/* Chooses the process. Fails where the recording is not of the program in question. */
int etch_build_check_program(struct build *b, struct etch_error *err);

/* The program's mapping must be known before an access or a frame is looked up. */
void etch_build_find_program(struct build *b);

bool etch_build_is_program(const struct build *b, const Etch__Image *image);

/* True where `image` is of the program, or of a library of its own; then b->bias is right for it. */
bool etch_build_use_image(struct build *b, const Etch__Image *image);

const Etch__Image *etch_build_image_at(const struct build *b, uint64_t address);

/* An address in memory as one of the program's or of its libraries' files; what is in neither, as if it were the
 * program's. */
uint64_t etch_build_file_address(struct build *b, uint64_t address);

int etch_build_make_tables(struct build *b, struct etch_error *err);
void etch_build_release_tables(struct build *b);

/* The place of an address of the file, in the slice. */
uint32_t etch_build_table_place(const struct build *b, uint64_t address);

/* True if a statement begins there. */
bool etch_build_begins(const struct build *b, uint64_t address);

/* The place of an address in the user's own code, in the slice or not. Code of system headers that was compiled into
 * the program has none: as that of a library it belongs to the line that called it. */
uint32_t etch_build_place_of(struct build *b, const Etch__Image *image, uint64_t address);

/* Its name, to be freed; NULL: not known. */
char *etch_build_function_at(struct build *b, uint64_t address);

/* The same, short, for people. */
char *etch_build_short_at(struct build *b, uint64_t address);

/* The name of a thread that begins its own work at an address: the outermost of the user's own functions there, short,
 * to be freed. NULL: there is none. */
char *etch_build_thread_name(struct build *b, uint64_t address);

/* ---- Accesses: before the walk, and behind it ---- */

/* Finds the instruction of each debug-register hit in the code, and what it accessed. */
int etch_build_settle_accesses(struct build *b, struct etch_error *err);

/* The slice's operands, by the address of their instruction and of their global. */
int etch_build_index_operands(struct build *b, struct etch_error *err);

/* The slice's operand whose instruction is at `address` of the file. */
const Etch__Operand *etch_build_operand_at(const struct build *b, uint64_t address, bool write);

/* Gives an access of library code the name that the line which it was made for has for the object. */
void etch_build_name_library(struct build *b, size_t access);

int etch_build_list_watches(struct build *b, struct etch_error *err);
int etch_build_list_accesses(struct build *b, struct etch_error *err);

/* Into the order's sequence; accesses of which the order knows nothing come last, by thread. */
int etch_build_sort_accesses(struct build *b, struct etch_error *err);

/* Which variables were watched: every access to them is known, from the time their place became known. */
int etch_build_list_watched(struct build *b, struct etch_error *err);

/* ---- The walk ---- */

int etch_build_walk(struct build *b, struct etch_error *err);

void etch_walk_take_step(struct build *b, struct walk *w, const struct etch_step *step);

/* `index`: of the instruction in its block. */
void etch_walk_visit(struct build *b, struct walk *w, const struct etch_step *step, uint32_t place, bool begins,
                     uint32_t index);

void etch_walk_return_to(struct walk *w, uint64_t address);

/* The user's own statement that the walk is in: the innermost on the thread's stack. `ip` is in the current function.
 */
uint32_t etch_walk_own_place(struct build *b, const struct walk *w, uint64_t ip);

/* ---- Synchronisation: which line an event is of ---- */

int etch_build_list_syncs(struct build *b, struct etch_error *err);

/* A call, before it is followed: the thread's next event may be of it. */
void etch_walk_take_syncs(struct build *b, struct walk *w, const struct etch_step *call);

/* The user's line that an event is of. */
uint32_t etch_build_sync_place(struct build *b, size_t sync);

/* ---- Hits: which step an access is of ---- */

size_t etch_walk_accesses_end(const struct build *b, const struct walk *w);

/* True if the next access of the thread is in this block. Nearly all blocks outside of the program have none. */
bool etch_walk_has_access(const struct build *b, const struct walk *w, const struct etch_step *step);

void etch_walk_place_access(struct build *b, struct walk *w, size_t access, const struct etch_step *step,
                            uint32_t index);

/* The next accesses, as far as they are of the instruction at `ip`. */
void etch_walk_take_accesses(struct build *b, struct walk *w, const struct etch_step *step, uint64_t ip,
                             uint32_t index);

/* Accesses of code without a recorder belong to the call that led there. Accesses of an unseen call are skipped when
 * their time has passed. */
void etch_walk_take_outside(struct build *b, struct walk *w, const struct etch_step *step, uint32_t index);

/* ---- The trail: the last instructions of the thread that failed, for values from its end ---- */

/* True if the walk's thread is the thread that failed, and its registers at the end are known. */
bool etch_trail_wants(const struct build *b, const struct walk *w);

/* An instruction of the thread ran. `place` is its place in the slice. */
void etch_trail_take(struct build *b, const struct walk *w, uint64_t ip, uint32_t index, uint32_t place);

/* A step that is no block, or the end of a block. */
void etch_trail_take_step(struct build *b, const struct walk *w, const struct etch_step *step);

/* A signal handler begins whose place among the instructions is not exact. */
void etch_trail_doubt(struct build *b);

/* Recovers values, behind the walk. A trail without values is no error. */
int etch_build_recover(struct build *b, struct etch_error *err);

/* The arguments of the calls on the stacks. After all values are known. */
void etch_build_arguments(struct build *b);

/* ---- Signal handlers ---- */

/* Tracing begins again: behind a system call, where a handler's end leads back to, or in a handler that came instead.
 */
void etch_walk_begin_again(struct build *b, struct walk *w, uint64_t ip);

/* A function that begins where nothing was called is a signal handler. It ends with the return to the outside that goes
 * with its beginning. Returns whether the step is one of a handler's. */
bool etch_walk_take_handler(struct build *b, struct walk *w, const struct etch_step *step);

/* True if the next access of the thread belongs to the steps that are held back. */
bool etch_walk_is_held(const struct build *b, const struct walk *w);

/* True if no later access belongs to the steps that are held back. Then nothing shows where the steps belong. */
bool etch_walk_is_nowhere(const struct build *b, const struct walk *w);

/* The held steps, in their place. A handler that is not complete goes on with the steps that follow. */
void etch_walk_run_handler(struct build *b, struct walk *w);

/* ---- Where a thread stood at its end ---- */

const Etch__ThreadState *etch_build_state_of(const Etch__Failure *f, uint32_t tid);

/* Takes what is known of a thread after its last step. */
void etch_walk_go_to_end(struct build *b, struct walk *w);

/* The instruction that failed did not run to its end, so no step has it; the statement began all the same. */
void etch_walk_visit_failure(struct build *b, struct walk *w);

/* Its stack, as the steps leave it. */
void etch_walk_stand(struct build *b, struct walk *w);

/* ---- Where the exit status came from ---- */

/* True if the run failed by its exit status, and not by a signal or a hang. */
bool etch_build_ended_itself(const struct build *b);

void etch_build_bound_exits(struct build *b);
void etch_walk_pass_exits(struct build *b, struct walk *w, const struct etch_step *step);

/* Takes the thread's stack at the statement that gave the status; false: the thread ran no such statement. */
bool etch_walk_stand_at_exit(struct build *b, struct walk *w);

/* Optimised code may have no instruction of the statement that gave the status. If only one statement can give it, that
 * statement ran all the same. */
void etch_walk_visit_exit(struct build *b, struct walk *w);

/* Places a thread whose decision on the exit status was not seen: at the only statement that can give the status, or
 * else before the last such statement that it passed. */
void etch_build_place_unseen_exit(struct build *b, struct etch_run_thread *t);

/* ---- The failure ---- */

/* Finds out whether the run failed, how, and where each thread stood. */
int etch_build_conclude(struct build *b, struct etch_error *err);

/* ---- Why it failed, where the signal alone does not say it ---- */

/* With the threads' frames at hand: finds the cause. The failure of an exception that nothing caught is where it was
 * thrown, in the thread that threw it. */
void etch_build_find_cause(struct build *b);

/* True if the instruction at `ip` is a trap: it does nothing but fail. */
bool etch_build_is_trap(struct build *b, uint64_t ip);

/* The failing statement's last accesses belong to its last visit, also where the steps end a little before them. */
void etch_build_place_last(struct build *b);

/* The crash itself shows that the failing instruction dereferenced a null pointer, without a watch. */
void etch_build_find_null(struct build *b);
int etch_build_add_null(struct build *b, struct etch_error *err);

/* An instruction that fails after it has read (a division) makes no debug register trap. It read all the same. */
int etch_build_add_fatal(struct build *b, struct etch_error *err);

#endif
