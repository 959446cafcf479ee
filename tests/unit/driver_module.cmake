# Modules, libraries, launches of the soft driver. The fixtures are the fuzz targets' corpora.

foreach(module module launch)
    heddle_unit_test(driver_${module} SOURCES driver_${module}.c driver_fake.c
        LIBS heddle_driver heddle_core
        ENV HED_CORPUS=${PROJECT_SOURCE_DIR}/tests/fuzz/corpus)
endforeach()
heddle_unit_test(driver_join SOURCES driver_join.c LIBS heddle_driver heddle_core)
