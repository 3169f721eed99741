/* SPDX-License-Identifier: MIT */
/* A calibration as a picture. */
#ifndef ETCH_CLI_CALIBRATE_PLOT_H
#define ETCH_CLI_CALIBRATE_PLOT_H

#include "calibrate/calibration.h"

/* Writes an SVG: the two spikes of the first pair, and each CPU's ranges. Returns 0, or -1 with `err` set. */
int etch_calibrate_plot(const struct etch_calibration *calibration, const char *path, struct etch_error *err);

#endif
