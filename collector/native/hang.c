/* SPDX-License-Identifier: MIT */
/* Programs that take too long or do not move; see hang.h. */
#include "collector/native/hang.h"
#include "collector/native/stuck.h"

#include <signal.h>

#define LOOK_NS 500000000u   /* between two looks for threads that wait for each other */
#define STUCK_NS 1000000000u /* they must have waited for so long */

static void give_up_on(struct native *n, Etch__FailureKind kind, const char *words)
{
    bool end = n->options->kill_on_hang;

    etch_native_capture(n, kind, 0, NULL, end, words);
    if (end)
        kill(n->target.pid, SIGKILL);
}

/* Etch does not wait for the time limit if the hang is certain: nothing in the process ran for a second, and nothing
 * can wake the process. This check is made only if a hang would end the process anyway. The check is not made if the
 * process may have an alarm from before an exec, or from before etch joined. */
static bool is_stuck(struct native *n, struct native_hang *h, uint64_t now)
{
    uint64_t print;
    bool stuck;

    if (!n->options->kill_on_hang || (n->options->wall_s <= 0 && n->options->hang_s <= 0) || !n->target.launched ||
        n->became_another || h->can_be_woken || now - h->looked_ns < LOOK_NS)
        return false;
    h->looked_ns = now;
    stuck = etch_stuck_look(n->target.pid, &print);
    if (!stuck || !h->stuck_since_ns || print != h->stuck_print) {
        h->stuck_since_ns = stuck ? now : 0;
        h->stuck_print = print;
        return false;
    }
    if (now - h->stuck_since_ns < STUCK_NS)
        return false;
    h->can_be_woken = etch_stuck_has_alarm(n->target.pid);
    return !h->can_be_woken;
}

/* The program would wait for ever. */
static bool is_hung(const struct native *n)
{
    return n->flow && n->flow->hung && n->flow->hung(n->flow_state);
}

bool etch_native_hang_check(struct native *n, struct native_hang *h, uint64_t now)
{
    uint64_t ran;

    if (h->reported)
        return false;
    if (is_hung(n)) {
        h->reported = true;
        etch_native_capture(n, ETCH__FAILURE_KIND__FAILURE_HANG, 0, NULL, true, "no thread can run");
        kill(n->target.pid, SIGKILL);
        return false;
    }
    if (is_stuck(n, h, now)) {
        h->reported = true;
        give_up_on(n, ETCH__FAILURE_KIND__FAILURE_HANG, "all threads wait for each other; not waited for longer");
        return false;
    }
    if (n->options->wall_s > 0 && (double)(now - h->started_ns) / 1e9 >= n->options->wall_s) {
        h->reported = true;
        if (!n->target.launched && !n->options->kill_on_hang)
            return true;
        give_up_on(n, ETCH__FAILURE_KIND__FAILURE_TIMEOUT, "");
        return false;
    }
    if (n->options->hang_s <= 0)
        return false;
    ran = etch_process_ran_ns(n->target.pid);
    if (ran != h->ran_ns) {
        h->ran_ns = ran;
        h->ran_changed_ns = now;
    } else if ((double)(now - h->ran_changed_ns) / 1e9 >= n->options->hang_s) {
        h->reported = true;
        give_up_on(n, ETCH__FAILURE_KIND__FAILURE_HANG, "");
    }
    return false;
}
