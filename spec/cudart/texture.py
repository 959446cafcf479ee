"""Textures, surfaces, channel formats."""

call("cudaCreateSurfaceObject", Out(cudaSurfaceObject_t, "pSurfObject"),
     In(Ref(cudaResourceDesc_12), "pResDesc"), editions="..12", by_hand=True,
     as_="cudaCreateSurfaceObject_12")
call("cudaCreateSurfaceObject", Out(cudaSurfaceObject_t, "pSurfObject"),
     In(Ref(cudaResourceDesc), "pResDesc"), editions="13..", by_hand=True)
call("cudaCreateTextureObject", Out(cudaTextureObject_t, "pTexObject"),
     In(Ref(cudaResourceDesc_12), "pResDesc"), In(Ref(cudaTextureDesc_10), "pTexDesc"),
     In(Ref(cudaResourceViewDesc_12), "pResViewDesc"), editions="..10", by_hand=True,
     as_="cudaCreateTextureObject_10")
call("cudaCreateTextureObject", Out(cudaTextureObject_t, "pTexObject"),
     In(Ref(cudaResourceDesc_12), "pResDesc"), In(Ref(cudaTextureDesc_11), "pTexDesc"),
     In(Ref(cudaResourceViewDesc_12), "pResViewDesc"), editions="11", by_hand=True,
     as_="cudaCreateTextureObject_11")
call("cudaCreateTextureObject", Out(cudaTextureObject_t, "pTexObject"),
     In(Ref(cudaResourceDesc_12), "pResDesc"), In(Ref(cudaTextureDesc), "pTexDesc"),
     In(Ref(cudaResourceViewDesc_12), "pResViewDesc"), editions="12", by_hand=True,
     as_="cudaCreateTextureObject_12")
call("cudaCreateTextureObject", Out(cudaTextureObject_t, "pTexObject"),
     In(Ref(cudaResourceDesc), "pResDesc"), In(Ref(cudaTextureDesc), "pTexDesc"),
     In(Ref(cudaResourceViewDesc), "pResViewDesc"), editions="13..", by_hand=True)
call("cudaCreateTextureObject_v2", Out(cudaTextureObject_t, "pTexObject"),
     In(Ref(cudaResourceDesc_12), "pResDesc"), In(Ref(cudaTextureDesc_v2), "pTexDesc"),
     In(Ref(cudaResourceViewDesc_12), "pResViewDesc"), editions="11", by_hand=True)
call("cudaDestroySurfaceObject", In(cudaSurfaceObject_t, "surfObject"),
     driver="cuSurfObjectDestroy")
call("cudaDestroyTextureObject", In(cudaTextureObject_t, "texObject"), driver="cuTexObjectDestroy")
call("cudaDeviceGetTexture1DLinearMaxWidth", Out(SIZE, "maxWidthInElements"),
     In(Ref(cudaChannelFormatDesc), "fmtDesc"), In(I32, "device"), editions="11..", by_hand=True)
call("cudaGetChannelDesc", Out(cudaChannelFormatDesc, "desc"), In(cudaArray_const_t, "array"),
     by_hand=True)
call("cudaGetSurfaceObjectResourceDesc", Out(cudaResourceDesc_12, "pResDesc"),
     In(cudaSurfaceObject_t, "surfObject"), editions="..12", by_hand=True,
     as_="cudaGetSurfaceObjectResourceDesc_12")
call("cudaGetSurfaceObjectResourceDesc", Out(cudaResourceDesc, "pResDesc"),
     In(cudaSurfaceObject_t, "surfObject"), editions="13..", by_hand=True)
call("cudaGetTextureObjectResourceDesc", Out(cudaResourceDesc_12, "pResDesc"),
     In(cudaTextureObject_t, "texObject"), editions="..12", by_hand=True,
     as_="cudaGetTextureObjectResourceDesc_12")
call("cudaGetTextureObjectResourceDesc", Out(cudaResourceDesc, "pResDesc"),
     In(cudaTextureObject_t, "texObject"), editions="13..", by_hand=True)
call("cudaGetTextureObjectResourceViewDesc", Out(cudaResourceViewDesc_12, "pResViewDesc"),
     In(cudaTextureObject_t, "texObject"), editions="..12", by_hand=True,
     as_="cudaGetTextureObjectResourceViewDesc_12")
call("cudaGetTextureObjectResourceViewDesc", Out(cudaResourceViewDesc, "pResViewDesc"),
     In(cudaTextureObject_t, "texObject"), editions="13..", by_hand=True)
call("cudaGetTextureObjectTextureDesc", Out(cudaTextureDesc_10, "pTexDesc"),
     In(cudaTextureObject_t, "texObject"), editions="..10", by_hand=True,
     as_="cudaGetTextureObjectTextureDesc_10")
call("cudaGetTextureObjectTextureDesc", Out(cudaTextureDesc_11, "pTexDesc"),
     In(cudaTextureObject_t, "texObject"), editions="11", by_hand=True,
     as_="cudaGetTextureObjectTextureDesc_11")
call("cudaGetTextureObjectTextureDesc", Out(cudaTextureDesc, "pTexDesc"),
     In(cudaTextureObject_t, "texObject"), editions="12..", by_hand=True)
call("cudaGetTextureObjectTextureDesc_v2", Out(cudaTextureDesc_v2, "pTexDesc"),
     In(cudaTextureObject_t, "texObject"), editions="11", by_hand=True)
