"""The machine code of sm_75 to sm_89: how the 128 bits of an instruction are laid out and how the
instruction is written. The files are executed in this order, in one name space (gen/sass.py, which
explains the vocabulary). docs/internals/sass.md is the guide.
"""

FILES = ["fields", "integer", "floating", "half", "convert", "memory", "control", "warp", "matrix",
         "texture", "uniform", "turing",
         "hopper"]
