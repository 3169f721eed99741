/* SPDX-License-Identifier: MIT */
/* One line each for the commands that need LLVM: they are in etch-llvm, and etch lists them too. */
#ifndef ETCH_CLI_SUMMARIES_H
#define ETCH_CLI_SUMMARIES_H

#define ETCH_SUMMARY_CC "clang with what etch needs built in: CC=\"etch cc\""
#define ETCH_SUMMARY_CXX "the same for C++: CXX=\"etch c++\""
#define ETCH_SUMMARY_DIAGNOSE "runs a program again and again, and shows how its failure happens"
#define ETCH_SUMMARY_EXPLORE "runs a program under many schedules until one fails"
#define ETCH_SUMMARY_CONFIRM "enforce the orders of a cause, and their opposite, in the lab or natively"
#define ETCH_SUMMARY_VERIFY_FIX "runs failing schedules and new ones on a mended program"
#define ETCH_SUMMARY_REPLAY "repeats a run that etch explore found"
#define ETCH_SUMMARY_SKETCH "how a failure happened, from recorded runs of a program"
#define ETCH_SUMMARY_SLICE "the statements that can have caused a failure, nearest first"

#endif
