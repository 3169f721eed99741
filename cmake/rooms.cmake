# SPDX-License-Identifier: MIT
# A room is a folder and a static library; what it may use is what it links, and nothing else does link.

add_library(etch_options INTERFACE)
target_compile_definitions(etch_options INTERFACE _GNU_SOURCE ETCH_VERSION="${PROJECT_VERSION}")
target_compile_options(etch_options INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes -Wvla)
target_include_directories(etch_options INTERFACE ${CMAKE_SOURCE_DIR})
if(ETCH_WERROR)
  target_compile_options(etch_options INTERFACE -Werror)
endif()
if(ETCH_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_C_COMPILER_ID MATCHES Clang)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
endif()

# etch_room(NAME source... [LINKS target...]): the library etch_NAME
function(etch_room name)
  cmake_parse_arguments(ROOM "" "" "LINKS" ${ARGN})
  add_library(etch_${name} STATIC ${ROOM_UNPARSED_ARGUMENTS})
  target_link_libraries(etch_${name} PUBLIC ${ROOM_LINKS} PRIVATE etch_options Threads::Threads)
  set_target_properties(etch_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
