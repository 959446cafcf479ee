# What docs/containers.md is about, to be copied and changed: Containerfile, compose file, recipes.

foreach(example ci containers)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/${example}
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples USE_SOURCE_PERMISSIONS
        PATTERN packages EXCLUDE)
endforeach()
