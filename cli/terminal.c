/* SPDX-License-Identifier: MIT */
/* See terminal.h. */
#include "cli/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static unsigned ask_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    long said = columns ? strtol(columns, NULL, 10) : 0;
    struct winsize size = {0};

    if (said > 0 && said < 100000)
        return (unsigned)said;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 120;
}

static bool is_utf8(void)
{
    locale_t user = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool utf8 = user && !strcmp(nl_langinfo_l(CODESET, user), "UTF-8");

    if (user)
        freelocale(user);
    return utf8;
}

struct etch_render_terminal etch_terminal_ask(FILE *stream)
{
    bool tty = isatty(fileno(stream));
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");

    return (struct etch_render_terminal){
        .width = ask_width(fileno(stream)),
        .colour = tty && !(no_colour && *no_colour) && term && *term && strcmp(term, "dumb") != 0,
        .unicode = tty && is_utf8(),
    };
}
