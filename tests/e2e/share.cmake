# What programs do with CUDA, while another shares the GPU: tests/gpu/programs/share_*.c, which
# tests/gpu/share.py runs on a real one.
if(TARGET heddle AND TARGET libcuda AND NOT HEDDLE_SANITIZE)
    set(programs ${PROJECT_SOURCE_DIR}/tests/gpu/programs)
    add_executable(e2e_share_matrix ${programs}/share_matrix.c ${programs}/share_streams.c
        ${programs}/share_launches.c ${programs}/share_memory.c)
    target_link_libraries(e2e_share_matrix PRIVATE
        heddle_harness heddle_gen_headers ${CMAKE_DL_LIBS} Threads::Threads)
    heddle_needs_gen(e2e_share_matrix)
    add_dependencies(e2e_share_matrix libcuda heddle)
    if(TARGET backend_cpu AND TARGET compiler_llvm AND TARGET e2e_sched_work)
        # mode, what the other wishes, what the program wishes
        set(modes "gate|policy=slice,slice_us=500|prio=low"
                  "record|policy=slice,slice_us=500|mode=record"
                  "record_own|policy=slice,slice_us=500|mode=record,stream=own")
        foreach(mode ${modes})
            string(REPLACE "|" ";" mode ${mode})
            list(GET mode 0 name)
            list(GET mode 1 other)
            list(GET mode 2 wishes)
            foreach(row legacy ptds streams events callbacks threads children graphs capture
                        failing pools boxes reuse)
                heddle_program_test(e2e.share_${name}.${row} LABELS e2e TIMEOUT 200
                    COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/contend $<TARGET_FILE:heddle>
                            $<TARGET_FILE:e2e_sched_work> cpu:h200 ${other}
                            $<TARGET_FILE:e2e_share_matrix> ${row}
                    ENV HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>
                        LD_LIBRARY_PATH=$<TARGET_FILE_DIR:libcuda> HED_CONTEND_WISHES=${wishes})
            endforeach()
        endforeach()
    endif()
endif()
