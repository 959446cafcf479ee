# Programs as compilers of that time made them, with each edition that they could have.
foreach(edition 8.0 10.2 11.0)
    string(REPLACE "." "" number ${edition})
    foreach(name old_launch old_structs old_texture)
        set(program cudart_${name}_${number})
        add_executable(${program} ${name}.c old_image.c)
        target_compile_definitions(${program} PRIVATE OLD_EDITION=${number})
        target_link_libraries(${program} PRIVATE heddle_harness libcudart_${edition})
        heddle_program_test(cudart.${name}.${edition} LABELS cudart COMMAND ${program}
            ENV HEDDLE_GPU=cpu HEDDLE_CONFIG= LD_LIBRARY_PATH=$<TARGET_FILE_DIR:libcuda>)
    endforeach()
endforeach()

# Textures by name, in code of the other tier, too.
heddle_program_test(cudart.old_texture.warp LABELS cudart COMMAND cudart_old_texture_110
    ENV HEDDLE_GPU=cpu HEDDLE_CONFIG= HEDDLE_CPU_CODEGEN=warp
        LD_LIBRARY_PATH=$<TARGET_FILE_DIR:libcuda>)

# The same references in the driver API.
add_executable(cudart_old_reference old_reference.c)
target_link_libraries(cudart_old_reference PRIVATE heddle_harness libcuda)
heddle_needs_gen(cudart_old_reference)
heddle_program_test(cudart.old_reference LABELS cudart COMMAND cudart_old_reference
    ENV HEDDLE_GPU=cpu HEDDLE_CONFIG= LD_LIBRARY_PATH=$<TARGET_FILE_DIR:libcuda>)

# Old programs with their device on a server.
if(TARGET backend_remote AND TARGET heddled AND TARGET heddle
   AND NOT "thread" IN_LIST HEDDLE_SANITIZE)
    foreach(name launch structs)
        add_dependencies(cudart_old_${name}_80 backend_remote heddled heddle)
        heddle_program_test(cudart.old_${name}.shm LABELS cudart remote
            COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/serve shm
                    $<TARGET_FILE_DIR:libcuda> $<TARGET_FILE:heddle> cpu
                    $<TARGET_FILE:cudart_old_${name}_80>
            ENV HEDDLE_CONFIG= LD_LIBRARY_PATH=$<TARGET_FILE_DIR:libcuda>)
    endforeach()
endif()
