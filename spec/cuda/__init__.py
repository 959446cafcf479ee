"""The CUDA 13.0 driver API. The files are executed in this order, in one name space
(gen/vocabulary.py)."""

FILES = ["core", "device", "context", "module", "memory", "copy", "array",
         "stream", "launch", "graph", "external", "interop", "flags", "local",
         "areas", "limits"]
