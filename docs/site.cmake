# The documentation as a site (tools/site), which is installed where it was asked for. `make site`
# makes it without a build.

option(HEDDLE_SITE "Make the documentation as HTML, and install it" OFF)
if(HEDDLE_SITE)
    # It is made each time, because its pages are made from files all over the tree.
    add_custom_target(heddle_site ALL
        COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/site
                --out ${PROJECT_BINARY_DIR}/site
        COMMENT "Making the documentation")
    install(DIRECTORY ${PROJECT_BINARY_DIR}/site/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/html
        PATTERN .heddle-site EXCLUDE)
endif()
