# Single instructions, whose results are compared with those of an H200 (exec/golden.txt, made there
# by rows_cuda --hash) or, for approximations, with libm.
if(HEDDLE_HAS_LLVM AND HEDDLE_CMOCKA)
    set(rows ${CMAKE_CURRENT_SOURCE_DIR}/exec)
    add_executable(rows_exec ${rows}/rows_exec.c ${rows}/rows_check.c ${rows}/rows.c
                             ${rows}/harness.c)
    target_link_libraries(rows_exec PRIVATE
        heddle_ptx_llvm heddle_ptx heddle_base ${HEDDLE_CMOCKA_LIBRARY} m)
    target_include_directories(rows_exec PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_include_directories(rows_exec SYSTEM PRIVATE ${HEDDLE_CMOCKA_INCLUDE})
    foreach(shape warp baseline)
        foreach(set i16 i32 i64 f16 bf16 f16x2 bf16x2 f32 trig f64 new)
            heddle_program_test(ptx.rows.${shape}.${set} LABELS ptx
                COMMAND rows_exec ${shape} ${rows}/golden.txt ${set})
        endforeach()
    endforeach()

    # The same for a processor that has nothing but the basic instructions.
    foreach(set i32 f16 bf16 f16x2 bf16x2 f32 trig)
        heddle_program_test(ptx.rows.basic.${set} LABELS ptx
            COMMAND rows_exec warp ${rows}/golden.txt ${set} ENV HED_FEATURES=)
    endforeach()

    # Instructions with one operand, for a sample of all floats. For all of them, by hand:
    # every_float 1
    add_executable(every_float ${rows}/every_float.c ${rows}/harness.c)
    target_link_libraries(every_float PRIVATE
        heddle_ptx_llvm heddle_ptx heddle_base ${HEDDLE_CMOCKA_LIBRARY} m)
    target_include_directories(every_float PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_include_directories(every_float SYSTEM PRIVATE ${HEDDLE_CMOCKA_INCLUDE})
    heddle_program_test(ptx.every_float LABELS ptx COMMAND every_float 65521)
endif()
add_executable(rows_cuda ${CMAKE_CURRENT_SOURCE_DIR}/exec/rows_cuda.c
                         ${CMAKE_CURRENT_SOURCE_DIR}/exec/rows.c)
target_link_libraries(rows_cuda PRIVATE m ${CMAKE_DL_LIBS})
