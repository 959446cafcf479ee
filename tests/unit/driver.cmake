# Unit tests of the soft driver.

foreach(module handle integrity space)
    heddle_unit_test(driver_${module} SOURCES driver_${module}.c LIBS heddle_driver)
endforeach()
