# Streams, events and the work on them, on a machine made of plain memory.

foreach(module stream stream_many event far)
    heddle_unit_test(driver_${module} SOURCES driver_${module}.c driver_fake.c
        LIBS heddle_driver heddle_core)
endforeach()

# The worker's side of functions and marks; the test stands in for the rest of the worker.
heddle_unit_test(server_host SOURCES server_host.c ${PROJECT_SOURCE_DIR}/src/server/host.c
    LIBS heddle_base)
