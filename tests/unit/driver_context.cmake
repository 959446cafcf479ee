# Contexts, devices and export tables of the soft driver, on a machine made of plain memory.

foreach(module areas context primary tables)
    heddle_unit_test(driver_${module} SOURCES driver_${module}.c driver_fake.c
        LIBS heddle_driver heddle_core)
endforeach()
