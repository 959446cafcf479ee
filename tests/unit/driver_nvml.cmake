# Device profiles, what processes share about devices, and NVML on it.

get_target_property(driver_definitions heddle_driver COMPILE_DEFINITIONS)
if("HED_HAVE_JANSSON" IN_LIST driver_definitions)
    heddle_unit_test(driver_profile SOURCES driver_profile.c LIBS heddle_driver)
endif()
heddle_unit_test(driver_nvml SOURCES driver_nvml.c driver_fake.c LIBS heddle_driver heddle_core)
