# Record mode: the programs of sched.cmake, clients that are threads, and what programs are told,
# which is what they are told without.
if(TARGET heddle AND TARGET libcuda AND NOT HEDDLE_SANITIZE)
    add_executable(e2e_record_clients record_clients.c)
    target_link_libraries(e2e_record_clients PRIVATE heddle_flags heddle_gen_headers
        Threads::Threads ${CMAKE_DL_LIBS})
    heddle_needs_gen(e2e_record_clients)
    add_dependencies(e2e_record_clients libcuda heddle)
    set(env HED_BUILD=${PROJECT_BINARY_DIR} HED_WORK=$<TARGET_FILE:e2e_sched_work>
        HED_CLIENTS=$<TARGET_FILE:e2e_record_clients>)
    foreach(class Alone Together Words)
        heddle_program_test(e2e.record_null.${class} LABELS e2e TIMEOUT 200
            COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/record_cli.py ${class}
            ENV HED_SCHED_GPU=null ${env})
        if(TARGET backend_cpu AND TARGET compiler_llvm)
            heddle_program_test(e2e.record_cpu.${class} LABELS e2e slow TIMEOUT 300
                COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/record_cli.py ${class}
                ENV HED_SCHED_GPU=cpu ${env})
        endif()
    endforeach()

    set(conformance ${PROJECT_SOURCE_DIR}/tests/conformance)
    set(env HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>
        LD_LIBRARY_PATH=$<TARGET_FILE_DIR:libcuda>)
    # Programs on null: no answer is compared, but nobody may hang, crash or forget.
    foreach(name bad_input fork threads reload exit_calls public_api rough)
        if(TARGET conf_${name})
            string(REPLACE "_" "-" room ${name})
            heddle_program_test(conformance.record.${name} LABELS conformance TIMEOUT 200
                COMMAND conf_${name}
                ENV ${env} HEDDLE_GPU=null HED_LATE=$<TARGET_FILE:conf_late>
                    HED_FAKE_CUDA=$<TARGET_FILE:conf_fake_cuda>
                    HEDDLE_SCHED=mode=record,room=conf-record-${room})
        endif()
    endforeach()
    foreach(name arrays contexts faults graphs launch memory modules pools streams surfaces
            textures)
        if(TARGET conf_answers_${name} AND TARGET backend_cpu AND TARGET compiler_llvm
           AND EXISTS ${conformance}/golden/${name}.txt)
            set(agree ${Python3_EXECUTABLE} -B ${conformance}/agree.py
                ${conformance}/golden/${name}.txt $<TARGET_FILE:conf_answers_${name}>)
            heddle_program_test(conformance.record.${name} LABELS conformance slow TIMEOUT 200
                COMMAND ${agree}
                ENV ${env} HEDDLE_GPU=cpu:h200 HEDDLE_SCHED=mode=record,room=conf-record-${name})
            heddle_program_test(conformance.record_held.${name} LABELS conformance slow TIMEOUT 300
                COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/contend $<TARGET_FILE:heddle>
                        $<TARGET_FILE:e2e_sched_work> cpu:h200 policy=slice,slice_us=500 ${agree}
                ENV ${env} HED_CONTEND_WISHES=mode=record)
        endif()
    endforeach()
endif()
