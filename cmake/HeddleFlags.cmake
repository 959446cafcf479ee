# The one place that knows compiler and linker flags. Everything links `heddle_flags`, directly or
# through the room below it. Also here: how a room, a shared library and a line of the configure
# summary are declared.
#
#   heddle_room(base SOURCES err.c ... [LIBS ...])       static library `heddle_base`
#   heddle_shared_library(target SOURCES ... [LIBS ...]  shared library with our link rules
#       [OUTPUT cuda] [SOVERSION 1] [MAP libcuda.map] [MODULE])
#   heddle_summary("LZ4" "found")                        one more line in the summary

include(CheckCCompilerFlag)

# A build type of our own, for `make demo`: it is made in less than half the time. Kernels that are
# compiled run as fast as ever, but calls and the baseline tier are slower.
set(CMAKE_C_FLAGS_QUICK "-O1 -DNDEBUG" CACHE STRING "Flags of the build type Quick")
mark_as_advanced(CMAKE_C_FLAGS_QUICK)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(HEDDLE_FUZZ AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HEDDLE_FUZZ needs clang (libFuzzer); without it every build runs the "
                        "same targets through tests/harness/fuzz_main.c")
endif()
if(HEDDLE_FUZZ AND NOT HEDDLE_SANITIZE)
    set(HEDDLE_SANITIZE address undefined)
endif()

add_library(heddle_flags INTERFACE)
target_include_directories(heddle_flags INTERFACE
    ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_BINARY_DIR}/gen)
target_compile_definitions(heddle_flags INTERFACE
    _GNU_SOURCE
    HED_VERSION="${PROJECT_VERSION}"
    $<$<BOOL:${HEDDLE_DEBUG}>:HED_DEBUG>)

set(heddle_c_flags
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
    -Wwrite-strings -Wvla -Wundef -Wformat=2 -Wimplicit-fallthrough -Wno-unused-parameter
    -fvisibility=hidden
    # __FILE__ appears in messages: it shows the path inside the tree, not on the build machine.
    # So do the names of generated files; equal sources give equal bytes in any folder.
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -fmacro-prefix-map=${PROJECT_BINARY_DIR}/=build/)
foreach(flag -fno-semantic-interposition -Walloca -Wduplicated-cond -Wlogical-op)
    string(MAKE_C_IDENTIFIER "HEDDLE_HAVE${flag}" have)
    # -Werror, because clang accepts unknown flags with a warning.
    check_c_compiler_flag("-Werror ${flag}" ${have})
    if(${have})
        list(APPEND heddle_c_flags ${flag})
    endif()
endforeach()
if(HEDDLE_WERROR)
    list(APPEND heddle_c_flags -Werror)
endif()
target_compile_options(heddle_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:${heddle_c_flags}>")

if(HEDDLE_SANITIZE)
    list(JOIN HEDDLE_SANITIZE "," sanitizers)
    set(sanitize_flags -fsanitize=${sanitizers} -fno-omit-frame-pointer)
    if("undefined" IN_LIST HEDDLE_SANITIZE)
        # A finding ends the test, because nobody would read a line in the log.
        list(APPEND sanitize_flags -fno-sanitize-recover=all)
    endif()
    if(HEDDLE_FUZZ)
        set(ignored ${CMAKE_CURRENT_LIST_DIR}/fuzz-ignore.txt)
        list(APPEND sanitize_flags -fsanitize=fuzzer-no-link
            -fsanitize-coverage-ignorelist=${ignored} -fsanitize-ignorelist=${ignored})
    endif()
    target_compile_options(heddle_flags INTERFACE
        "$<$<COMPILE_LANGUAGE:C>:${sanitize_flags}>")
    target_link_options(heddle_flags INTERFACE -fsanitize=${sanitizers})
endif()

# The link rules of STYLE: nothing undefined, everything bound at load. A sanitizer's runtime lives
# in the executable, so its symbols are undefined in our libraries and -z defs cannot hold.
set(heddle_shared_link_options -Wl,-z,now)
if(NOT HEDDLE_SANITIZE)
    list(APPEND heddle_shared_link_options -Wl,-z,defs)
endif()

# Generated headers are there before anything that may include them is compiled.
function(heddle_needs_gen target)
    if(TARGET heddle_gen)
        add_dependencies(${target} heddle_gen)
    endif()
endfunction()

function(heddle_room name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
    add_library(heddle_${name} STATIC ${arg_SOURCES})
    target_link_libraries(heddle_${name} PUBLIC heddle_flags ${arg_LIBS})
    heddle_needs_gen(heddle_${name})
endfunction()

function(heddle_shared_library target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "MODULE" "OUTPUT;SOVERSION;MAP" "SOURCES;LIBS")
    if(arg_MODULE)
        add_library(${target} MODULE ${arg_SOURCES})
        set_target_properties(${target} PROPERTIES PREFIX "")
    else()
        add_library(${target} SHARED ${arg_SOURCES})
    endif()
    target_link_libraries(${target} PRIVATE heddle_flags ${arg_LIBS})
    target_link_options(${target} PRIVATE ${heddle_shared_link_options})
    heddle_needs_gen(${target})
    if(arg_OUTPUT)
        set_target_properties(${target} PROPERTIES OUTPUT_NAME ${arg_OUTPUT})
    endif()
    if(DEFINED arg_SOVERSION)
        set_target_properties(${target} PROPERTIES SOVERSION ${arg_SOVERSION})
    endif()
    if(arg_MAP)
        get_filename_component(map ${arg_MAP} ABSOLUTE)
        target_link_options(${target} PRIVATE -Wl,--version-script=${map})
        set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
    endif()
endfunction()

# Makes NAME.pc of NAME.pc.in and installs it. Its paths are relative, so that a tree can be moved
# and installed anywhere.
function(heddle_pkg_config name)
    if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
        set(pc_prefix ${CMAKE_INSTALL_PREFIX})
        set(pc_libdir ${CMAKE_INSTALL_LIBDIR})
    else()
        file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
        string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${up}")
        set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
    endif()
    if(IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
        set(pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
    else()
        set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
    endif()
    configure_file(${name}.pc.in ${name}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libheddle-dev)
endfunction()

function(heddle_summary label value)
    string(LENGTH "${label}" length)
    math(EXPR pad "16 - ${length}")
    if(pad LESS 1)
        set(pad 1)
    endif()
    string(REPEAT " " ${pad} spaces)
    set_property(GLOBAL APPEND_STRING PROPERTY heddle_summary "  ${label}${spaces}${value}\n")
endfunction()

# Called once, at the end of the top CMakeLists.txt: the fixed lines, then those of the rooms.
function(heddle_print_summary)
    get_property(rooms GLOBAL PROPERTY heddle_summary)
    set_property(GLOBAL PROPERTY heddle_summary "")
    list(JOIN HEDDLE_SANITIZE " " sanitizers)
    set(unit_tests ${HEDDLE_CMOCKA})
    set(why_no_tests "cmocka not found")
    if(NOT HEDDLE_TESTS)
        set(unit_tests OFF)
        set(why_no_tests "HEDDLE_TESTS")
    endif()
    foreach(pair "fuzzing;HEDDLE_FUZZ;libFuzzer;standalone driver"
                 "sanitizers;HEDDLE_SANITIZE;${sanitizers};none"
                 "warnings;HEDDLE_WERROR;are errors;are warnings"
                 "debug checks;HEDDLE_DEBUG;on;off"
                 "unit tests;unit_tests;on;off (${why_no_tests})"
                 "cuda.h;HEDDLE_CUDA_INCLUDE;${HEDDLE_CUDA_INCLUDE};not found"
                 "nvcc;HEDDLE_NVCC;${HEDDLE_NVCC};not found")
        list(GET pair 0 label)
        list(GET pair 1 condition)
        list(GET pair 2 yes)
        list(GET pair 3 no)
        if(${condition})
            heddle_summary("${label}" "${yes}")
        else()
            heddle_summary("${label}" "${no}")
        endif()
    endforeach()
    get_property(fixed GLOBAL PROPERTY heddle_summary)
    message(STATUS "heddle ${PROJECT_VERSION}\n"
        "  compiler        ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}, "
        "${CMAKE_SYSTEM_PROCESSOR}\n"
        "  build type      ${CMAKE_BUILD_TYPE}\n"
        "  python          ${Python3_VERSION}\n"
        "${fixed}${rooms}")
endfunction()
