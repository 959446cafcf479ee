# The soft driver's readers.

get_target_property(driver_definitions heddle_driver COMPILE_DEFINITIONS)
if("HED_HAVE_JANSSON" IN_LIST driver_definitions)
    heddle_fuzz_target(profile SOURCES profile.c LIBS heddle_driver CORPUS corpus/profile)
endif()
