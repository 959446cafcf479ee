"""The runtime API of CUDA 8 to 13. The files are executed in this order (gen/runtime.py)."""

FILES = ["errors", "enums", "types", "structs", "device_types", "graph_types", "device", "stream",
         "memory", "copy", "texture", "launch", "graph", "interop", "old", "contexts"]
