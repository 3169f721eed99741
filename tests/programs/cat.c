/* SPDX-License-Identifier: MIT */
/* Copies its input to its output, in capitals to standard error too; exit status is the number of lines. */
#include <ctype.h>
#include <stdio.h>

int main(void)
{
    int c, lines = 0;

    while ((c = getchar()) != EOF) {
        putchar(c);
        fputc(toupper(c), stderr);
        lines += c == '\n';
    }
    return lines;
}
