# SPDX-License-Identifier: MIT
# cmake -DIN=file -DOUT=file.h -DNAME=name -P embed.cmake: the bytes of a file as a C string, with its SHA-256.
file(READ ${IN} bytes HEX)
file(SHA256 ${IN} sum)
string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${bytes}")
file(WRITE ${OUT} "/* SPDX-License-Identifier: MIT */
/* Made from a file of the tree by cmake/embed.cmake. */
static const unsigned char ${NAME}[] = {
    ${bytes}0};
static const char ${NAME}_sha256[] = \"${sum}\";
")
