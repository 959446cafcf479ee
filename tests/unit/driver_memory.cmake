# Memory of the soft driver: plain, host, managed, pools, virtual, copies, arrays, textures.

foreach(area memory copy pool array far_memory)
    heddle_unit_test(driver_${area} SOURCES driver_${area}.c driver_fake.c
        LIBS heddle_driver heddle_core)
endforeach()
