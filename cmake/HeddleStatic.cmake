# HEDDLE_STATIC: the libraries of others are linked statically, so that what is built needs nothing
# of a machine but its C library (and libgcc_s, which the C library brings along). The wheel and the
# tarball of a release are built like that (docs/releasing.md); packages of a distribution are not,
# because the distribution updates its libraries.
#
#   heddle_static_llvm(LLVM_CONFIG OUT)   puts into OUT what to link for the compiler of kernels
#   heddle_static_jansson(TARGET)         lets a shared library have jansson inside

option(HEDDLE_STATIC "Link LLVM, OpenSSL, jansson, ncurses, lz4, zstd and libstdc++ statically" OFF)

if(HEDDLE_STATIC)
    # find_library looks for archives first. Where there is none, the shared library is taken, and
    # tools/wheel refuses what needs it.
    set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
    set(OPENSSL_USE_STATIC_LIBS ON)
    # What nobody calls is left out: half of LLVM is. (No version script exports what it does not
    # name, so the archives of others need no --exclude-libs.)
    add_link_options(-Wl,--gc-sections)
endif()

# LLVM's archives, in the order of llvm-config, and what they call of others. The C compiler links
# them, so the C++ library is named by its path. Of what `--system-libs` lists, xml2, ffi and z3 are
# for parts of LLVM that no kernel needs.
function(heddle_static_llvm llvm_config out)
    set(${out} "" PARENT_SCOPE)
    execute_process(COMMAND ${llvm_config} --link-static --libfiles native passes
                    OUTPUT_VARIABLE archives OUTPUT_STRIP_TRAILING_WHITESPACE
                    RESULT_VARIABLE failed ERROR_QUIET)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libstdc++.a
                    OUTPUT_VARIABLE cxx OUTPUT_STRIP_TRAILING_WHITESPACE)
    find_library(HEDDLE_Z_LIBRARY z)
    find_library(HEDDLE_ZSTD_LIBRARY zstd)
    mark_as_advanced(HEDDLE_Z_LIBRARY HEDDLE_ZSTD_LIBRARY)
    if(failed OR NOT IS_ABSOLUTE "${cxx}" OR NOT HEDDLE_Z_LIBRARY OR NOT HEDDLE_ZSTD_LIBRARY)
        message(WARNING "HEDDLE_STATIC: LLVM cannot be linked statically: it needs LLVM's archives "
                        "(llvm-19-dev), libstdc++.a, zlib1g-dev and libzstd-dev")
        return()
    endif()
    separate_arguments(archives UNIX_COMMAND "${archives}")
    set(${out} ${archives} ${HEDDLE_ZSTD_LIBRARY} ${HEDDLE_Z_LIBRARY} ${cxx} m PARENT_SCOPE)
endfunction()

# The library has all of the driver in it, and so driver/static/no_input.c.
function(heddle_static_jansson target)
    if(HEDDLE_STATIC AND TARGET PkgConfig::JANSSON)
        target_link_options(${target} PRIVATE -Wl,--defsym=stdin=hed_driver_no_input)
    endif()
endfunction()
