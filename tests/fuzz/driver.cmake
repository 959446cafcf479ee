# The soft driver's readers.

get_target_property(driver_definitions heddle_driver COMPILE_DEFINITIONS)
if("HED_HAVE_JANSSON" IN_LIST driver_definitions)
    heddle_fuzz_target(profile SOURCES profile.c LIBS heddle_driver CORPUS corpus/profile)
endif()

# Images and launches from programs, on a machine made of plain memory.
if(HEDDLE_CMOCKA)
    foreach(name module_load launch)
        heddle_fuzz_target(${name} SOURCES ${name}.c ../unit/driver/fake.c
            LIBS heddle_driver heddle_core ${HEDDLE_CMOCKA_LIBRARY} CORPUS corpus/${name})
        target_include_directories(fuzz_${name} SYSTEM PRIVATE ${HEDDLE_CMOCKA_INCLUDE})
    endforeach()
endif()
