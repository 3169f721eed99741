/* SPDX-License-Identifier: MIT */
#include "shelf.h"

struct shelf shelf = {.room = 3, .top = {"etch", 7}};
