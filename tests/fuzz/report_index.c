/* SPDX-License-Identifier: MIT */
/* An index of etch report from a stranger: it is refused, or every view can be made of it. */
#include "report/export.h"
#include "report/index.h"
#include "report/table.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct etch_profile *profile = etch_profile_unpack_any(data, size);
    const struct etch_table_filter filter = {0};
    char *text = NULL;
    size_t length = 0;
    FILE *out;

    if (!profile)
        return 0;
    out = open_memstream(&text, &length);
    if (out) {
        etch_table_print(profile, &filter, out);
        etch_table_json(profile, &filter, out);
        for (uint32_t i = 0; i < profile->functions.n && i < 16; i++)
            etch_histogram_print(profile, i, i % 2, out);
        etch_export_folded(profile, out);
        etch_export_speedscope(profile, out);
        etch_export_pprof(profile, out);
        etch_flame_html(profile, NULL, out);
        fclose(out);
    }
    free(text);
    etch_profile_free(profile);
    return 0;
}
