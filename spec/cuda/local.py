"""Calls that a server never makes for a client, although their arguments could travel."""

local("it reads or writes files of the machine",
      "cuModuleLoad", "cuLibraryLoadFromFile", "cuLinkAddFile*", "cuLogsDumpToFile",
      "cuProfilerInitialize", "cuGraphDebugDotPrint", "cuCoredump*")
local("it stops or moves other processes", "cuCheckpointProcess*")
local("it names an object of the graphics system of the machine",
      "cuGL*", "cuGraphicsGL*", "cuEGL*", "cuGraphicsEGL*", "cuEventCreateFromEGLSync", "cuVDPAU*",
      "cuGraphicsVDPAU*", "cuGraphicsMapResources", "cuGraphicsUnmapResources",
      "cuGraphicsResource*", "cuGraphicsSubResource*", "cuGraphicsUnregisterResource")
local("it names a descriptor or an object of this process",
      "cuImportExternal*", "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle",
      "cuMemPoolExport*", "cuMemPoolImport*", "cuMemGetHandleForAddressRange",
      "cuDeviceGetNvSciSyncAttributes")
local("it shares memory with other processes of the machine", "cuIpc*")
local("it tells what this process, not the client, has printed", "cuLogs*")
