# Programs that share a GPU: on null, where only the order counts, and on the CPU GPU, where kernels
# take time and their results are checked.
if(TARGET heddle AND TARGET libcuda AND NOT HEDDLE_SANITIZE)
    add_executable(e2e_sched_work sched_work.c)
    target_link_libraries(e2e_sched_work PRIVATE heddle_flags heddle_gen_headers ${CMAKE_DL_LIBS})
    heddle_needs_gen(e2e_sched_work)
    add_dependencies(e2e_sched_work libcuda heddle)
    set(env HED_BUILD=${PROJECT_BINARY_DIR} HED_WORK=$<TARGET_FILE:e2e_sched_work>)
    heddle_program_test(e2e.sched_null.Files LABELS e2e TIMEOUT 200
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/sched_cli.py Files
        ENV HED_SCHED_GPU=null ${env})
    foreach(class Together Deaths Words)
        heddle_program_test(e2e.sched_null.${class} LABELS e2e TIMEOUT 200
            COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/sched_cli.py ${class}
            ENV HED_SCHED_GPU=null ${env})
        if(TARGET backend_cpu AND TARGET compiler_llvm)
            heddle_program_test(e2e.sched_cpu.${class} LABELS e2e slow TIMEOUT 300
                COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/sched_cli.py ${class}
                ENV HED_SCHED_GPU=cpu ${env})
        endif()
    endforeach()
    # What programs are told under contention is what they are told alone. (Those whose calls put no
    # work on the GPU do not contend.)
    foreach(name arrays faults graphs launch memory modules streams)
        if(TARGET conf_answers_${name} AND TARGET backend_cpu AND TARGET compiler_llvm)
            set(conformance ${PROJECT_SOURCE_DIR}/tests/conformance)
            heddle_program_test(conformance.sched.${name} LABELS conformance slow TIMEOUT 200
                COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/contend $<TARGET_FILE:heddle>
                        $<TARGET_FILE:e2e_sched_work> cpu:h200 policy=slice,slice_us=500
                        ${Python3_EXECUTABLE} -B ${conformance}/agree.py
                        ${conformance}/golden/${name}.txt $<TARGET_FILE:conf_answers_${name}>
                ENV HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>
                    LD_LIBRARY_PATH=$<TARGET_FILE_DIR:libcuda>)
        endif()
    endforeach()
endif()
