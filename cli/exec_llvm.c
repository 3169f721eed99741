/* SPDX-License-Identifier: MIT */
/* The commands that need LLVM. For them etch runs etch-llvm, the same program linked with LLVM, which lies beside etch.
 * So a machine that only records neither loads LLVM nor needs LLVM installed. */
#include "cli/command.h"
#include "cli/record_lab.h"
#include "cli/summaries.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* argv[-1] is the name of the program, as in main(). Returns -1 with `err` set. */
static int exec_llvm(char **argv, struct etch_error *err)
{
    char self_path[4096], path[4128];
    ssize_t n = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
    char *slash;

    self_path[n > 0 ? n : 0] = '\0';
    slash = strrchr(self_path, '/');
    snprintf(path, sizeof(path), "%.*setch-llvm", slash ? (int)(slash + 1 - self_path) : 0, self_path);
    execv(path, argv - 1);
    etch_error_set_errno(err, errno, "cannot run %s, which has the commands that need LLVM", path);
    return etch_error_advise(err, "install etch-llvm beside etch");
}

static int run_elsewhere(const struct etch_command *self, int argc, char **argv)
{
    struct etch_error err;

    (void)argc;
    exec_llvm(argv, &err);
    return etch_command_failed(self, &err);
}

int etch_record_in_lab(const struct etch_record_lab *about, struct etch_record_options *options,
                       struct etch_record_summary *summary, struct etch_error *err)
{
    if (exec_llvm(about->argv, err) < 0 && !about->automatic)
        return -1;
    options->source = etch_record_source_without_lab();
    return etch_record(options, summary, err);
}

const struct etch_command etch_command_cc = {.name = "cc", .summary = ETCH_SUMMARY_CC, .run = run_elsewhere};
const struct etch_command etch_command_cxx = {.name = "c++", .summary = ETCH_SUMMARY_CXX, .run = run_elsewhere};
const struct etch_command etch_command_diagnose = {
    .name = "diagnose", .summary = ETCH_SUMMARY_DIAGNOSE, .run = run_elsewhere};
const struct etch_command etch_command_confirm = {
    .name = "confirm", .summary = ETCH_SUMMARY_CONFIRM, .run = run_elsewhere, .keeps_signals = true};
const struct etch_command etch_command_verify_fix = {
    .name = "verify-fix", .summary = ETCH_SUMMARY_VERIFY_FIX, .run = run_elsewhere};
const struct etch_command etch_command_explore = {
    .name = "explore", .summary = ETCH_SUMMARY_EXPLORE, .run = run_elsewhere, .keeps_signals = true};
const struct etch_command etch_command_replay = {
    .name = "replay", .summary = ETCH_SUMMARY_REPLAY, .run = run_elsewhere, .keeps_signals = true};
const struct etch_command etch_command_sketch = {
    .name = "sketch", .summary = ETCH_SUMMARY_SKETCH, .run = run_elsewhere};
const struct etch_command etch_command_slice = {.name = "slice", .summary = ETCH_SUMMARY_SLICE, .run = run_elsewhere};
