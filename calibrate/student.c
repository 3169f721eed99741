/* SPDX-License-Identifier: MIT */
/* Student's t by the incomplete beta function; see student.h. */
#include "calibrate/student.h"

#include <math.h>

/* One term of the continued fraction, folded in from both ends (Lentz). */
static double fold(double term, double *c, double *d)
{
    const double tiny = 1e-300;

    *d = 1 + term * *d;
    *c = 1 + term / *c;
    *d = 1 / (fabs(*d) < tiny ? tiny : *d);
    *c = fabs(*c) < tiny ? tiny : *c;
    return *c * *d;
}

/* The continued fraction of the incomplete beta function. It converges fast for x < (a + 1) / (a + b + 2), which the
 * caller sees to. */
static double beta_fraction(double a, double b, double x)
{
    double c = 1;
    double d = 1 / (1 - (a + b) * x / (a + 1));
    double h = d;

    for (int m = 1; m < 1000; m++) {
        double step;

        h *= fold(m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), &c, &d);
        step = fold(-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), &c, &d);
        h *= step;
        if (fabs(step - 1) < 1e-15)
            break;
    }
    return h;
}

/* lgamma() writes a global sign; all arguments here are positive, and this one is free of it. */
static double log_gamma(double x)
{
    int sign;

    return lgamma_r(x, &sign);
}

/* The regularised incomplete beta function I_x(a, b). */
static double beta(double a, double b, double x)
{
    double front;

    if (x <= 0)
        return 0;
    if (x >= 1)
        return 1;
    front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double etch_student_tail(double t, double df)
{
    return 0.5 * beta(df / 2, 0.5, df / (df + t * t));
}

double etch_student_quantile(double confidence, double df)
{
    double tail = (1 - confidence) / 2;
    double lo = 0;
    double hi = 1;

    while (etch_student_tail(hi, df) > tail && hi < 1e12)
        hi *= 2;
    for (int i = 0; i < 200 && hi - lo > 1e-12 * hi; i++) {
        double middle = (lo + hi) / 2;

        if (etch_student_tail(middle, df) > tail)
            lo = middle;
        else
            hi = middle;
    }
    return (lo + hi) / 2;
}
