# SPDX-License-Identifier: MIT
# cmake -DSOURCE=folder -DOUT=file.h -P commit.cmake: which commit this tree is of, for etch --version. git knows if SOURCE is the
# top of a work tree. git archive and ./run package write the commit into cmake/commit.txt. Any other copy has no commit.
cmake_minimum_required(VERSION 3.25)
set(commit "")
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top RESULT_VARIABLE status
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(REAL_PATH ${SOURCE} source)
if(status EQUAL 0 AND "${top}" STREQUAL "${source}")
  execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD -- RESULT_VARIABLE changed ERROR_QUIET)
  if(commit AND NOT changed EQUAL 0)
    string(APPEND commit ", changed")
  endif()
else()
  file(STRINGS ${SOURCE}/cmake/commit.txt line LIMIT_COUNT 1)
  if(line MATCHES "^([0-9a-f]+)(, changed)?$")
    string(SUBSTRING ${CMAKE_MATCH_1} 0 12 commit)
    string(APPEND commit "${CMAKE_MATCH_2}")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "/* SPDX-License-Identifier: MIT */
/* Made by cmake/commit.cmake. Empty: the commit is not known. */
#define ETCH_COMMIT \"@commit@\"
" @ONLY)
