/* SPDX-License-Identifier: MIT */
/* dlopen and dlclose, twice over, of two libraries that may well land at the same place. */
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int use(const char *folder, const char *name)
{
    char path[4200];
    int (*work)(int), result;
    void *symbol, *library;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    library = dlopen(path, RTLD_NOW);
    if (!library)
        return -1;
    symbol = dlsym(library, "plugin_work");
    memcpy(&work, &symbol, sizeof(work));
    result = work(7);
    dlclose(library);
    return result;
}

int main(void)
{
    char self[4096] = "";
    int sum = 0;

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return 1;
    dirname(self);
    for (int i = 0; i < 2; i++) {
        sum = sum * 1000 + use(self, "libplugin_a.so");
        sum = sum * 1000 + use(self, "libplugin_b.so");
    }
    printf("loader %d\n", sum);
    return 0;
}
