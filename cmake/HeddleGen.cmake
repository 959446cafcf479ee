# Runs the generator over the specs and makes libraries from its output.
#
#   heddle_gen_headers   interface: targets that include "gen/..." link it
#   heddle_names         names of enum values, schemas
#   heddle_put           calls into bytes      heddle_get   bytes into calls
#   heddle_handles       the handles in a call's arguments, what can travel
#   heddle_work          how much work a call is, which memory it touches
#   HEDDLE_GEN_DIR       where the files are; they are included as "gen/cuda_calls.h"
#   HEDDLE_GEN_CUDA      the DEPENDS of a custom command that reads the files of the CUDA API
#   HEDDLE_GEN_NVML      the same for NVML

set(HEDDLE_GEN_DIR ${PROJECT_BINARY_DIR}/gen/gen)
file(GLOB heddle_gen_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/gen/*.py)
set(heddle_gen_outputs)

foreach(api cuda nvml)
    file(GLOB spec_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/spec/${api}/*.py)
    set(outputs)
    foreach(file ${api}_abi.h ${api}_calls.h ${api}_calls.md
                 ${api}_check_nvidia.c ${api}_check_ours.c
                 ${api}_forward.c ${api}_front.c ${api}_front.h ${api}_get.c ${api}_handles.c
                 ${api}_handles.h ${api}_hash.h ${api}_info.c
                 ${api}_names.c ${api}_names.h ${api}_null.c ${api}_procs.c ${api}_put.c
                 ${api}_real.c ${api}_real.h ${api}_sets.h ${api}_travel.c ${api}_travel.h
                 ${api}_wire.h ${api}_work.c ${api}_work.h
                 ${api}.exports ${api}.map wire_${api}.md)
        list(APPEND outputs ${HEDDLE_GEN_DIR}/${file})
    endforeach()
    # The generator leaves unchanged files alone; the stamp tells ninja that it has run.
    add_custom_command(
        OUTPUT ${HEDDLE_GEN_DIR}/${api}.stamp
        BYPRODUCTS ${outputs}
        COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/gen/emit.py
                --spec ${PROJECT_SOURCE_DIR}/spec/${api} --out ${HEDDLE_GEN_DIR}
        COMMAND ${CMAKE_COMMAND} -E touch ${HEDDLE_GEN_DIR}/${api}.stamp
        DEPENDS ${heddle_gen_sources} ${spec_files} ${PROJECT_SOURCE_DIR}/spec/${api}.ids
        COMMENT "Generating ${api} code")
    list(APPEND heddle_gen_outputs ${HEDDLE_GEN_DIR}/${api}.stamp)
    # Only this folder's makefile has the rule for the stamp. A custom command of another folder
    # also needs the target: it makes sure that the stamp exists before its time is compared.
    string(TOUPPER ${api} API)
    set(HEDDLE_GEN_${API} heddle_gen ${HEDDLE_GEN_DIR}/${api}.stamp)
    set_source_files_properties(${outputs} PROPERTIES GENERATED TRUE)
endforeach()

# The tables of machine code.
file(GLOB spec_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/spec/sass/*.py)
set(outputs ${HEDDLE_GEN_DIR}/sass_table.c ${HEDDLE_GEN_DIR}/sass_kinds.h)
add_custom_command(
    OUTPUT ${HEDDLE_GEN_DIR}/sass.stamp
    BYPRODUCTS ${outputs}
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/gen/sass.py
            --spec ${PROJECT_SOURCE_DIR}/spec/sass --out ${HEDDLE_GEN_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${HEDDLE_GEN_DIR}/sass.stamp
    DEPENDS ${heddle_gen_sources} ${spec_files}
    COMMENT "Generating tables of machine code")
list(APPEND heddle_gen_outputs ${HEDDLE_GEN_DIR}/sass.stamp)

# The runtime API, and the editions of its library: the N of libcudart.so.N.
set(HEDDLE_CUDART_EDITIONS 8.0 10.2 11.0 12 13)
file(GLOB spec_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/spec/cudart/*.py
     ${PROJECT_SOURCE_DIR}/spec/cuda/*.py)
set(outputs)
foreach(file abi.h calls.h calls.md driver.c driver.h errors.c)
    list(APPEND outputs ${HEDDLE_GEN_DIR}/cudart_${file})
endforeach()
foreach(edition ${HEDDLE_CUDART_EDITIONS})
    list(APPEND outputs ${HEDDLE_GEN_DIR}/cudart_front_${edition}.c
         ${HEDDLE_GEN_DIR}/cudart_${edition}.map ${HEDDLE_GEN_DIR}/cudart_${edition}.exports)
endforeach()
list(APPEND outputs ${HEDDLE_GEN_DIR}/cudart_check_13.c)
add_custom_command(
    OUTPUT ${HEDDLE_GEN_DIR}/cudart.stamp
    BYPRODUCTS ${outputs}
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/gen/emit_runtime.py
            --cuda ${PROJECT_SOURCE_DIR}/spec/cuda --spec ${PROJECT_SOURCE_DIR}/spec/cudart
            --out ${HEDDLE_GEN_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${HEDDLE_GEN_DIR}/cudart.stamp
    DEPENDS ${heddle_gen_sources} ${spec_files}
    COMMENT "Generating the runtime API")
list(APPEND heddle_gen_outputs ${HEDDLE_GEN_DIR}/cudart.stamp)
set_source_files_properties(${outputs} PROPERTIES GENERATED TRUE)

add_custom_target(heddle_gen DEPENDS ${heddle_gen_outputs})
add_library(heddle_gen_headers INTERFACE)
add_dependencies(heddle_gen_headers heddle_gen)

# A static library of generated files: heddle_gen_library(names cuda_names.c nvml_names.c LIBS ...)
function(heddle_gen_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS")
    list(TRANSFORM arg_UNPARSED_ARGUMENTS PREPEND ${HEDDLE_GEN_DIR}/ OUTPUT_VARIABLE files)
    add_library(heddle_${name} STATIC ${files})
    target_link_libraries(heddle_${name} PUBLIC heddle_flags heddle_gen_headers ${arg_LIBS})
    add_dependencies(heddle_${name} heddle_gen)
endfunction()

heddle_gen_library(names cuda_names.c nvml_names.c)
heddle_gen_library(put cuda_put.c nvml_put.c LIBS heddle_base)
heddle_gen_library(get cuda_get.c nvml_get.c LIBS heddle_base)
heddle_gen_library(work cuda_work.c)
heddle_gen_library(handles cuda_handles.c cuda_travel.c nvml_handles.c nvml_travel.c)

# The proof that the spec agrees with NVIDIA's headers, if they are installed.
add_library(heddle_check OBJECT
    ${HEDDLE_GEN_DIR}/cuda_check_ours.c ${HEDDLE_GEN_DIR}/nvml_check_ours.c)
target_link_libraries(heddle_check PRIVATE heddle_flags)
add_dependencies(heddle_check heddle_gen)
if(HEDDLE_CUDA_INCLUDE)
    target_sources(heddle_check PRIVATE ${HEDDLE_GEN_DIR}/cuda_check_nvidia.c)
    set_source_files_properties(${HEDDLE_GEN_DIR}/cuda_check_nvidia.c PROPERTIES
        COMPILE_OPTIONS "-isystem;${HEDDLE_CUDA_INCLUDE};-Wno-deprecated-declarations")
    if(EXISTS ${HEDDLE_CUDA_INCLUDE}/cuda_runtime_api.h)
        target_sources(heddle_check PRIVATE ${HEDDLE_GEN_DIR}/cudart_check_13.c)
        set_source_files_properties(${HEDDLE_GEN_DIR}/cudart_check_13.c PROPERTIES
            COMPILE_OPTIONS "-isystem;${HEDDLE_CUDA_INCLUDE};-Wno-deprecated-declarations")
    endif()
    if(EXISTS ${HEDDLE_CUDA_INCLUDE}/nvml.h)
        target_sources(heddle_check PRIVATE ${HEDDLE_GEN_DIR}/nvml_check_nvidia.c)
        set_source_files_properties(${HEDDLE_GEN_DIR}/nvml_check_nvidia.c PROPERTIES
            COMPILE_OPTIONS "-isystem;${HEDDLE_CUDA_INCLUDE};-Wno-deprecated-declarations")
    endif()
endif()
