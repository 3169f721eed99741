/* SPDX-License-Identifier: MIT */
/* Student's t distribution: the quantile that turns a mean of few values into an interval at a chosen confidence. */
#ifndef ETCH_CALIBRATE_STUDENT_H
#define ETCH_CALIBRATE_STUDENT_H

/* P(T > t) for `df` > 0 degrees of freedom, t >= 0. Right to about 12 digits, relative, far into the tail. */
double etch_student_tail(double t, double df);

/* The t for which P(|T| > t) = 1 - confidence, 0 < confidence < 1. */
double etch_student_quantile(double confidence, double df);

#endif
