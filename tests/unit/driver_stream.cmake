# Streams, events and the work on them, on a machine made of plain memory.

foreach(module stream stream_many event)
    heddle_unit_test(driver_${module} SOURCES driver_${module}.c driver_fake.c
        LIBS heddle_driver heddle_core)
endforeach()
