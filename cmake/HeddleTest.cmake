# How tests are declared. Every test runs through tests/harness/launch, which gives it an empty
# scratch folder (HED_SCRATCH) and ends every process that it has left. A test may exit with 77 for
# "skipped".
#
#   heddle_unit_test(base_err SOURCES base_err.c LIBS heddle_base)
#       A cmocka program; each cmocka_unit_test*(name) in SOURCES becomes the CTest case
#       `unit.base_err.name`, label `unit`. Does nothing without cmocka.
#   heddle_program_test(e2e.saxpy LABELS e2e COMMAND saxpy arg ENV A=1 B=2 [TIMEOUT 900])
#       A plain program with an exit code. COMMAND may begin with a target made earlier. TIMEOUT is
#       for a test that needs more than heddle_test_patience.
#   heddle_fuzz_target(base_str SOURCES base_str.c LIBS heddle_base CORPUS corpus/base_str)
#       A program around LLVMFuzzerTestOneInput (tests/harness/fuzz.h); CTest case
#       `fuzz.base_str`, label `fuzz`. Uses libFuzzer with HEDDLE_FUZZ, otherwise our own driver,
#       with RUNS mutants if a target is slow.
#
# Under AddressSanitizer the cases run without LeakSanitizer, which takes seconds at each exit on
# some machines; one case `<case>.leaks` (label `slow`) runs the whole program with it.

set(heddle_harness ${PROJECT_SOURCE_DIR}/tests/harness)

find_path(HEDDLE_CMOCKA_INCLUDE cmocka.h)
find_library(HEDDLE_CMOCKA_LIBRARY cmocka)
mark_as_advanced(HEDDLE_CMOCKA_INCLUDE HEDDLE_CMOCKA_LIBRARY)
set(HEDDLE_CMOCKA OFF)
if(HEDDLE_CMOCKA_INCLUDE AND HEDDLE_CMOCKA_LIBRARY)
    set(HEDDLE_CMOCKA ON)
endif()

# Builds every unit test and what they need, and nothing else.
add_custom_target(unit_tests)

add_library(heddle_harness INTERFACE)
target_include_directories(heddle_harness INTERFACE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(heddle_harness INTERFACE heddle_flags)

# Without heddle_flags: a sanitizer is for the test, not for the program that starts it.
add_executable(heddle_launch ${heddle_harness}/launch.c)
target_compile_definitions(heddle_launch PRIVATE _GNU_SOURCE)
set_target_properties(heddle_launch PROPERTIES
    OUTPUT_NAME launch RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/harness)
set(heddle_test_launcher $<TARGET_FILE:heddle_launch>)
# Seconds after which a test counts as hanging: far more than a busy machine needs, and more than
# tests wait for a single thing (tests/harness/patience.py, patience.h).
set(heddle_test_patience 600)
# Nothing is compiled after a test has ended, and its folder is gone.
set(heddle_test_env HEDDLE_CPU_AFTER=off)
if("address" IN_LIST HEDDLE_SANITIZE)
    list(APPEND heddle_test_env ASAN_OPTIONS=detect_leaks=0)
endif()
if("undefined" IN_LIST HEDDLE_SANITIZE)
    list(APPEND heddle_test_env UBSAN_OPTIONS=print_stacktrace=1)
endif()
if("thread" IN_LIST HEDDLE_SANITIZE)
    set(heddle_tsan_suppressions suppressions=${heddle_harness}/tsan.supp)
    list(APPEND heddle_test_env
        TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:${heddle_tsan_suppressions})
    # TSan maps its shadow at fixed places. Kernels that randomise more address bits than the
    # runtime knows of (vm.mmap_rnd_bits over 28 on x86-64) make it die at start, now and then.
    # Without randomisation it always starts. Containers may forbid it, hence the trial.
    find_program(HEDDLE_SETARCH setarch)
    mark_as_advanced(HEDDLE_SETARCH)
    if(HEDDLE_SETARCH)
        execute_process(COMMAND ${HEDDLE_SETARCH} -R true RESULT_VARIABLE failed
                        OUTPUT_QUIET ERROR_QUIET)
        if(NOT failed)
            list(APPEND heddle_test_launcher ${HEDDLE_SETARCH} -R)
        endif()
    endif()
endif()

set(heddle_long_list ${PROJECT_SOURCE_DIR}/tests/long.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${heddle_long_list})
file(STRINGS ${heddle_long_list} heddle_long_cases REGEX "^[^#]")

function(heddle_program_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS;COMMAND;ENV")
    if(NOT arg_COMMAND OR NOT arg_LABELS OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "heddle_program_test(${name}): needs LABELS and COMMAND")
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT ${heddle_test_patience})
    endif()
    # CTest begins with the greatest cost, and knows no times in a fresh tree: cases that mostly
    # wait for other processes should not be the last ones.
    set(cost 0)
    if("snap" IN_LIST arg_LABELS OR "vm" IN_LIST arg_LABELS OR "lint" IN_LIST arg_LABELS)
        set(cost 2)
    elseif("e2e" IN_LIST arg_LABELS OR "faults" IN_LIST arg_LABELS)
        set(cost 1)
    endif()
    if(name IN_LIST heddle_long_cases)
        list(APPEND arg_LABELS long)
    endif()
    list(POP_FRONT arg_COMMAND program)
    if(TARGET ${program})
        add_dependencies(${program} heddle_launch)
        set(program $<TARGET_FILE:${program}>)
    endif()
    add_test(NAME ${name} COMMAND ${heddle_test_launcher} ${program} ${arg_COMMAND})
    # Later settings win, so that a test can replace what the sanitizers ask for.
    set(env HED_SCRATCH=${PROJECT_BINARY_DIR}/scratch/${name} ${heddle_test_env} ${arg_ENV})
    set_tests_properties(${name} PROPERTIES
        LABELS "${arg_LABELS}"
        ENVIRONMENT "${env}"
        COST ${cost}
        SKIP_RETURN_CODE 77
        TIMEOUT ${arg_TIMEOUT})
endfunction()

# The names in cmocka_unit_test(name) and its variants, found in the text of the sources.
function(heddle_find_unit_tests out)
    set(names "")
    foreach(source ${ARGN})
        get_filename_component(path ${source} ABSOLUTE)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
        file(READ ${path} text)
        string(REGEX MATCHALL "cmocka_unit_test[a-z_]*\\([ \n]*[A-Za-z0-9_]+" calls "${text}")
        list(TRANSFORM calls REPLACE "^.*\\([ \n]*" "")
        list(APPEND names ${calls})
    endforeach()
    set(${out} ${names} PARENT_SCOPE)
endfunction()

function(heddle_unit_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LIBS;ENV")
    if(NOT HEDDLE_CMOCKA)
        return()
    endif()
    heddle_find_unit_tests(tests ${arg_SOURCES})
    list(LENGTH tests count)
    if(count EQUAL 0)
        message(FATAL_ERROR "heddle_unit_test(${name}): no cmocka_unit_test in ${arg_SOURCES}")
    endif()

    add_executable(unit_${name} ${arg_SOURCES})
    heddle_needs_gen(unit_${name})
    add_dependencies(unit_tests unit_${name})
    target_link_libraries(unit_${name} PRIVATE
        heddle_harness ${arg_LIBS} ${HEDDLE_CMOCKA_LIBRARY})
    target_include_directories(unit_${name} SYSTEM PRIVATE ${HEDDLE_CMOCKA_INCLUDE})
    # HED_UNIT_MAIN compares this with the size of the table: no test can escape the regex.
    target_compile_definitions(unit_${name} PRIVATE HED_UNIT_COUNT=${count})

    set(timeout "") # a keyword without a value is not for newer versions of CMake
    if(arg_TIMEOUT)
        set(timeout TIMEOUT ${arg_TIMEOUT})
    endif()
    foreach(test ${tests})
        heddle_program_test(unit.${name}.${test} LABELS unit COMMAND unit_${name} ${test}
                            ENV ${arg_ENV} ${timeout})
    endforeach()
    heddle_leaks_test(unit.${name} COMMAND unit_${name} ENV ${arg_ENV})
endfunction()

function(heddle_leaks_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND;ENV")
    if("address" IN_LIST HEDDLE_SANITIZE)
        heddle_program_test(${name}.leaks LABELS slow COMMAND ${arg_COMMAND}
                            ENV ${arg_ENV} ASAN_OPTIONS=detect_leaks=1)
    endif()
endfunction()

# Builds every fuzz target; tools/fuzz runs them.
add_custom_target(fuzz_targets)

function(heddle_fuzz_target name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS;RUNS" "SOURCES;LIBS")
    set(corpus "")
    set(runs "")
    if(arg_RUNS)
        set(runs -n ${arg_RUNS})
    endif()
    if(arg_CORPUS)
        get_filename_component(corpus ${arg_CORPUS} ABSOLUTE)
    endif()
    add_executable(fuzz_${name} ${arg_SOURCES})
    heddle_needs_gen(fuzz_${name})
    add_dependencies(fuzz_targets fuzz_${name})
    target_link_libraries(fuzz_${name} PRIVATE heddle_harness ${arg_LIBS})
    if(HEDDLE_FUZZ)
        # libFuzzer adds its findings to the first folder, so that is the scratch folder: the
        # corpus in the tree grows only by hand.
        set(scratch ${PROJECT_BINARY_DIR}/scratch/fuzz.${name})
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        heddle_program_test(fuzz.${name} LABELS fuzz TIMEOUT 600
            COMMAND fuzz_${name} -seed=1 -runs=200000 -max_total_time=120 -print_final_stats=1
                    -artifact_prefix=${scratch}/ ${scratch} ${corpus})
    else()
        target_sources(fuzz_${name} PRIVATE ${heddle_harness}/fuzz_main.c)
        heddle_program_test(fuzz.${name} LABELS fuzz TIMEOUT 300
            COMMAND fuzz_${name} ${runs} ${corpus})
        heddle_leaks_test(fuzz.${name} COMMAND fuzz_${name} -n 1000 ${corpus})
    endif()
endfunction()
