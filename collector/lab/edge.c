/* SPDX-License-Identifier: MIT */
/* Where the lab's code begins and ends in a lab build: compiled twice, and linked as its first and its last part. */
#include "collector/lab/runtime.h"

void EDGE(void)
{
}
