# The loader of compiled kernels. Its seed is an object file for this machine, built with the tests.
set(seeds ${CMAKE_CURRENT_BINARY_DIR}/corpus_ptx_load)
file(MAKE_DIRECTORY ${seeds})
add_library(fuzz_ptx_load_seed OBJECT ../unit/ptx/load_object.c)
target_include_directories(fuzz_ptx_load_seed PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(fuzz_ptx_load_seed PRIVATE -g0 -O2 -fPIC -fno-stack-protector)
heddle_fuzz_target(ptx_load SOURCES ptx_load.c LIBS heddle_ptx CORPUS ${seeds})
add_dependencies(fuzz_ptx_load fuzz_ptx_load_seed)
add_custom_command(TARGET fuzz_ptx_load POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_OBJECTS:fuzz_ptx_load_seed> ${seeds}/object)
