# The lexer, the parser and the printer of PTX.
foreach(module errors lex parse print)
    heddle_unit_test(ptx_${module} SOURCES ptx_${module}.c LIBS heddle_ptx)
endforeach()
