/* SPDX-License-Identifier: MIT */
/* The same as the corpus has. */
#include "../corpus/corpus.h"
