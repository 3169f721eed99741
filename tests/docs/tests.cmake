# SPDX-License-Identifier: MIT
# Every command of the tutorial and of the how-tos.
foreach(document tutorial howto/always-on howto/autotools howto/ci howto/cmake howto/containers howto/systemd)
  if(NOT ETCH_SANITIZE) # there they take minutes, and run no code that the tests of e2e/ do not
    add_test(NAME docs/${document} COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/docs/doc.sh docs/${document}.md)
    set_tests_properties(docs/${document} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77
      ENVIRONMENT "ETCH=$<TARGET_FILE:etch>;ETCH_SOURCE=${CMAKE_SOURCE_DIR};ETCH_BUILD=${CMAKE_BINARY_DIR}")
  endif()
endforeach()
add_test(NAME docs/site COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/docs/site.sh)
set_tests_properties(docs/site PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 ENVIRONMENT "ETCH_SOURCE=${CMAKE_SOURCE_DIR}")
