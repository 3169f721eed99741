/* SPDX-License-Identifier: MIT */
/* The picture of a calibration; see calibrate_plot.h. */
#include "cli/calibrate_plot.h"

#include "base/output.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 860
#define LEFT 80
#define RIGHT 30
#define PLOT (WIDTH - LEFT - RIGHT)
#define HISTOGRAM_TOP 70
#define HISTOGRAM_HEIGHT 220
#define RANGES_TOP 390
#define ROW 26
#define BINS 240

struct axis {
    double lo, hi;
};

static double across(const struct axis *axis, double value)
{
    return LEFT + (value - axis->lo) / (axis->hi - axis->lo) * PLOT;
}

static int ascending(const void *x, const void *y)
{
    int64_t a = ((const struct etch_race_difference *)x)->cycles;
    int64_t b = ((const struct etch_race_difference *)y)->cycles;

    return a < b ? -1 : a > b;
}

/* A round step that gives about six ticks. */
static double tick_step(const struct axis *axis)
{
    double raw = (axis->hi - axis->lo) / 6;
    double power = pow(10, floor(log10(raw)));
    double lead = raw / power;

    return (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10) * power;
}

static void draw_axis(FILE *out, const struct axis *axis, double y, const char *title)
{
    double step = tick_step(axis);

    fprintf(out, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' class='axis'/>\n", LEFT, y, LEFT + PLOT, y);
    for (long i = (long)ceil(axis->lo / step); (double)i * step <= axis->hi; i++) {
        double v = (double)i * step;
        double x = across(axis, v);

        fprintf(out, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' class='axis'/>", x, y, x, y + 5);
        fprintf(out, "<text x='%.1f' y='%.1f' text-anchor='middle'>%.0f</text>\n", x, y + 20,
                fabs(v) < step / 2 ? 0 : v);
    }
    fprintf(out, "<text x='%d' y='%.1f' text-anchor='end' class='dim'>%s</text>\n", LEFT + PLOT, y + 38, title);
}

/* Shows the middle 99 %. Disturbed rounds lie far outside, and an axis that includes them would flatten the spikes. */
static struct axis histogram_axis(const struct etch_race_difference *d, size_t n)
{
    size_t outside = n / 200;
    struct axis axis = {.lo = (double)d[outside].cycles, .hi = (double)d[n - 1 - outside].cycles};
    double margin = (axis.hi - axis.lo) * 0.06 + 4;

    axis.lo -= margin;
    axis.hi += margin;
    return axis;
}

static void draw_histogram(FILE *out, const struct etch_calibration *c, struct etch_race_difference *d)
{
    size_t n = c->n_differences, most = 1, shown = 0;
    size_t bins[BINS] = {0};
    struct axis axis;
    const struct etch_skew_interval *interval = &c->cpus[0].interval;

    qsort(d, n, sizeof(*d), ascending);
    axis = histogram_axis(d, n);
    for (size_t i = 0; i < n; i++) {
        double at = ((double)d[i].cycles - axis.lo) / (axis.hi - axis.lo) * BINS;

        if (at < 0 || at >= BINS)
            continue;
        shown++;
        if (++bins[(size_t)at] > most)
            most = bins[(size_t)at];
    }
    fprintf(out, "<text x='%d' y='32' class='title'>Stamp of CPU %u minus stamp of CPU %u, %zu rounds</text>\n", LEFT,
            c->cpus[0].cpu, c->reference, n);
    fprintf(out,
            "<text x='%d' y='52' class='dim'>one spike for each CPU that set the flag; the skew is the middle between "
            "them; %zu disturbed rounds lie outside the picture</text>\n",
            LEFT, n - shown);
    for (int i = 0; i < BINS; i++) {
        double height = (double)bins[i] / (double)most * HISTOGRAM_HEIGHT;

        if (bins[i])
            fprintf(out, "<rect x='%.2f' y='%.2f' width='%.2f' height='%.2f' class='bar'/>\n",
                    LEFT + (double)i * PLOT / BINS, HISTOGRAM_TOP + HISTOGRAM_HEIGHT - height, (double)PLOT / BINS,
                    height);
    }
    draw_axis(out, &axis, HISTOGRAM_TOP + HISTOGRAM_HEIGHT, "cycles");
    if (interval->values > 1) {
        double x = across(&axis, interval->mean);

        fprintf(out, "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' class='mean'/>\n", x, HISTOGRAM_TOP, x,
                HISTOGRAM_TOP + HISTOGRAM_HEIGHT);
        fprintf(out, "<text x='%.1f' y='%d' class='meantext'>%.1f</text>\n", x + 6, HISTOGRAM_TOP + 12, interval->mean);
    }
}

static struct axis ranges_axis(const struct etch_calibration *c)
{
    struct axis axis = {.lo = -10, .hi = 10};
    double margin;

    for (size_t i = 0; i < c->n_cpus; i++) {
        const struct etch_skew_bounds *b = &c->cpus[i].bounds;

        if (!etch_skew_bounds_known(b))
            continue;
        axis.lo = fmin(axis.lo, (double)b->lo);
        axis.hi = fmax(axis.hi, (double)b->hi);
    }
    margin = (axis.hi - axis.lo) * 0.08;
    axis.lo -= margin;
    axis.hi += margin;
    return axis;
}

static void draw_range(FILE *out, const struct axis *axis, const struct etch_calibration_cpu *cpu, double y)
{
    fprintf(out, "<text x='%d' y='%.1f' text-anchor='end'>CPU %u</text>\n", LEFT - 8, y + 4, cpu->cpu);
    if (!etch_skew_bounds_known(&cpu->bounds)) {
        fprintf(out, "<text x='%d' y='%.1f' class='dim'>unknown</text>\n", LEFT + 8, y + 4);
        return;
    }
    fprintf(out, "<rect x='%.1f' y='%.1f' width='%.1f' height='12' rx='3' class='range'/>\n",
            across(axis, (double)cpu->bounds.lo), y - 6,
            across(axis, (double)cpu->bounds.hi) - across(axis, (double)cpu->bounds.lo));
    if (cpu->interval.values > 1) {
        double x = across(axis, cpu->interval.lo);

        fprintf(out, "<rect x='%.1f' y='%.1f' width='%.1f' height='16' class='interval'/>\n", x, y - 8,
                fmax(2, across(axis, cpu->interval.hi) - x));
    }
}

static void draw_ranges(FILE *out, const struct etch_calibration *c)
{
    struct axis axis = ranges_axis(c);
    double bottom = RANGES_TOP + ROW * (double)c->n_cpus;

    fprintf(out, "<text x='%d' y='%d' class='title'>Clock of each CPU against CPU %u</text>\n", LEFT, RANGES_TOP - 34,
            c->reference);
    fprintf(out,
            "<rect x='%d' y='%d' width='14' height='10' rx='3' class='range'/><text x='%d' y='%d' class='dim'>cannot "
            "be wrong</text>"
            "<rect x='%d' y='%d' width='4' height='12' class='interval'/><text x='%d' y='%d' class='dim'>at %.5g %%, "
            "if a cache line takes equally long in both directions</text>\n",
            LEFT, RANGES_TOP - 24, LEFT + 20, RANGES_TOP - 15, LEFT + 160, RANGES_TOP - 25, LEFT + 170, RANGES_TOP - 15,
            100 * (c->n_cpus ? c->cpus[0].interval.confidence : 0));
    for (size_t i = 0; i < c->n_cpus; i++)
        draw_range(out, &axis, &c->cpus[i], RANGES_TOP + ROW * ((double)i + 0.5));
    draw_axis(out, &axis, bottom, "cycles");
    fprintf(out, "<line x1='%.1f' y1='%d' x2='%.1f' y2='%.1f' class='zero'/>\n", across(&axis, 0), RANGES_TOP,
            across(&axis, 0), bottom);
}

static void draw(FILE *out, const struct etch_calibration *c, struct etch_race_difference *d)
{
    int height = RANGES_TOP + ROW * (int)c->n_cpus + 60;

    fprintf(out, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d'>\n", WIDTH, height,
            WIDTH, height);
    fputs("<style>text{font:12px sans-serif;fill:#222}.title{font-size:15px;font-weight:bold}.dim{fill:#666}"
          ".axis{stroke:#888}.bar{fill:#4477aa}.mean{stroke:#cc3311;stroke-width:1.5}.meantext{fill:#cc3311}"
          ".range{fill:#aabbd0}.interval{fill:#cc3311}.zero{stroke:#bbb;stroke-dasharray:3 3}</style>\n"
          "<rect width='100%' height='100%' fill='white'/>\n",
          out);
    if (d)
        draw_histogram(out, c, d);
    draw_ranges(out, c);
    fputs("</svg>\n", out);
}

int etch_calibrate_plot(const struct etch_calibration *c, const char *path, struct etch_error *err)
{
    struct etch_race_difference *sorted = NULL;
    struct etch_output *output;
    FILE *out;

    if (etch_output_report(&output, path, err) < 0)
        return -1;
    out = etch_output_stream(output);
    if (!out) {
        etch_output_discard(output);
        return etch_error_set_errno(err, ENOMEM, "cannot write %s", path);
    }
    if (c->n_differences > 200 && c->n_cpus) {
        sorted = malloc(c->n_differences * sizeof(*sorted));
        if (sorted)
            memcpy(sorted, c->differences, c->n_differences * sizeof(*sorted));
    }
    draw(out, c, sorted);
    free(sorted);
    return etch_output_finish(output, err);
}
