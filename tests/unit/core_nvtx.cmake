# The library that a profiler would bring; the end-to-end tests have it, too.
add_library(e2e_nvtx_tool MODULE ${PROJECT_SOURCE_DIR}/tests/e2e/nvtx_tool.c)
target_link_libraries(e2e_nvtx_tool PRIVATE heddle_flags ${CMAKE_DL_LIBS})

heddle_unit_test(core_nvtx SOURCES core_nvtx.c LIBS heddle_core
    ENV HED_NVTX_TOOL=$<TARGET_FILE:e2e_nvtx_tool>)
if(TARGET unit_core_nvtx)
    add_dependencies(unit_core_nvtx e2e_nvtx_tool)
endif()
