# Random kernels, which must do the same in all tiers. For an hour, by hand:
# ptx_random --seed 1000 --seconds 3600
if(HEDDLE_HAS_LLVM AND HEDDLE_CMOCKA)
    set(exec ${CMAKE_CURRENT_SOURCE_DIR}/exec)
    add_executable(ptx_random ${exec}/random.c ${exec}/random_kernel.c ${exec}/random_code.c
                              ${exec}/random_forms.c ${exec}/random_share.c
                              ${exec}/random_ways.c ${exec}/harness.c
                              ${PROJECT_SOURCE_DIR}/tests/sass/lifted.c)
    target_link_libraries(ptx_random PRIVATE
        heddle_sass heddle_ptx_llvm heddle_ptx heddle_base ${HEDDLE_CMOCKA_LIBRARY} m)
    target_include_directories(ptx_random PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_include_directories(ptx_random SYSTEM PRIVATE ${HEDDLE_CMOCKA_INCLUDE})
    # What the compiler claims of values, against the numbers that they have.
    add_executable(ptx_claims ${exec}/random_claims.c ${exec}/random_kernel.c ${exec}/random_code.c
                              ${exec}/random_forms.c ${exec}/random_share.c
                              ${exec}/random_ways.c ${exec}/harness.c)
    target_link_libraries(ptx_claims PRIVATE
        heddle_ptx_llvm heddle_ptx heddle_base ${HEDDLE_CMOCKA_LIBRARY})
    target_include_directories(ptx_claims PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_include_directories(ptx_claims SYSTEM PRIVATE ${HEDDLE_CMOCKA_INCLUDE})
    heddle_program_test(ptx.random_claims LABELS ptx COMMAND ptx_claims --seed 1 --count 500)
    heddle_program_test(ptx.random_kernels LABELS ptx COMMAND ptx_random --seed 1 --count 8)
    # A kernel that once gave another answer: the absolute value of a constant NaN.
    heddle_program_test(ptx.random_kernels.nan LABELS ptx
        COMMAND ptx_random --seed 11000556 --count 1)
endif()
