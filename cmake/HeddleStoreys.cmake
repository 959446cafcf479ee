# Which storeys are built. Each that can be left out has an option:
#
#   AUTO   built if what it needs is there
#   ON     built; configuring fails if what it needs is not there
#   OFF    left out, and so are its tests. The command says by name what this build lacks.
#
#   HEDDLE_HAS_<NAME>   what was decided; HEDDLE_HAS_ALL: only the CPU GPU, and what needs
#                       it, may be left out
#   "gen/storeys.h"     the same for C: HED_HAVE_<NAME> is 0 or 1

# Device profiles are JSON.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
    pkg_check_modules(JANSSON QUIET IMPORTED_TARGET jansson)
endif()
if(TARGET PkgConfig::JANSSON)
    heddle_summary("jansson" "found")
else()
    heddle_summary("jansson" "not found (libjansson-dev)")
    set(no_jansson "jansson was not found (libjansson-dev)")
endif()

# The screen of `heddle top`. Without it, that command prints.
option(HEDDLE_CURSES "The screen of heddle top, if ncursesw is there" ON)
set(HEDDLE_HAS_CURSES OFF)
find_path(HEDDLE_CURSES_INCLUDE curses.h)
find_library(HEDDLE_NCURSESW ncursesw)
find_library(HEDDLE_TINFO tinfo)
mark_as_advanced(HEDDLE_CURSES_INCLUDE HEDDLE_NCURSESW HEDDLE_TINFO)
if(NOT HEDDLE_CURSES)
    heddle_summary("ncursesw" "off (HEDDLE_CURSES)")
elseif(HEDDLE_CURSES_INCLUDE AND HEDDLE_NCURSESW)
    heddle_summary("ncursesw" "found")
    set(HEDDLE_HAS_CURSES ON)
    add_library(heddle_curses INTERFACE)
    target_include_directories(heddle_curses SYSTEM INTERFACE ${HEDDLE_CURSES_INCLUDE})
    target_compile_definitions(heddle_curses INTERFACE NCURSES_WIDECHAR=1)
    # Some systems have the part that knows terminals in a library of its own.
    target_link_libraries(heddle_curses INTERFACE ${HEDDLE_NCURSESW}
                          $<$<BOOL:${HEDDLE_TINFO}>:${HEDDLE_TINFO}>)
else()
    heddle_summary("ncursesw" "not found (libncurses-dev); heddle top has no screen")
endif()

# heddle_storey(MOVE "what it is for" [NEEDS REMOTE ...] [LACKS "what is missing on this machine"])
function(heddle_storey name text)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "LACKS" "NEEDS")
    set(HEDDLE_${name} AUTO CACHE STRING "${text}: AUTO, ON or OFF")
    set_property(CACHE HEDDLE_${name} PROPERTY STRINGS AUTO ON OFF)
    set(why "${arg_LACKS}")
    foreach(need ${arg_NEEDS})
        if(NOT HEDDLE_HAS_${need})
            set(why "it needs HEDDLE_${need}")
        endif()
    endforeach()
    string(TOLOWER ${name} label)
    if(NOT HEDDLE_${name})
        set(has OFF)
        heddle_summary(${label} "off (HEDDLE_${name})")
    elseif(why STREQUAL "")
        set(has ON)
        heddle_summary(${label} "on: ${text}")
    elseif(HEDDLE_${name} STREQUAL "AUTO")
        set(has OFF)
        heddle_summary(${label} "off: ${why}")
    else()
        message(FATAL_ERROR "HEDDLE_${name} is ${HEDDLE_${name}}, but cannot be built: ${why}")
    endif()
    set(HEDDLE_HAS_${name} ${has} PARENT_SCOPE)
endfunction()

heddle_storey(CPU "a GPU that is this computer" LACKS "${no_jansson}")
heddle_storey(SHARE "several programs on one GPU, memory limits")
heddle_storey(REMOTE "GPUs of servers")
heddle_storey(SERVER "heddled, the server")
heddle_storey(MOVE "save, restore and move programs" NEEDS REMOTE)
heddle_storey(SEE "traces")
heddle_storey(CUDART "a CUDA runtime of our own")
heddle_storey(FASTLIBS "matrix products and convolutions by OpenBLAS" NEEDS CPU)

set(HEDDLE_HAS_ALL ON)
set(HEDDLE_LEFT_OUT "")
set(have "/* Made by cmake/HeddleStoreys.cmake. */\n#pragma once\n\n")
foreach(name CPU SHARE REMOTE SERVER MOVE SEE CUDART FASTLIBS)
    if(HEDDLE_HAS_${name})
        string(APPEND have "#define HED_HAVE_${name} 1\n")
    else()
        string(APPEND have "#define HED_HAVE_${name} 0\n")
        string(TOLOWER ${name} label)
        string(APPEND HEDDLE_LEFT_OUT " ${label}")
        if(NOT name MATCHES "^(CPU|FASTLIBS)$")
            set(HEDDLE_HAS_ALL OFF)
        endif()
    endif()
endforeach()
string(STRIP "${HEDDLE_LEFT_OUT}" HEDDLE_LEFT_OUT)
string(APPEND have "\n/* What this build lacks: \"move share\". */\n"
    "#define HED_LEFT_OUT \"${HEDDLE_LEFT_OUT}\"\n")
file(CONFIGURE OUTPUT ${HEDDLE_GEN_DIR}/storeys.h CONTENT "${have}" @ONLY)
