"""Copies, fills, symbols, prefetching."""

call("cudaGetSymbolAddress", Out(PTR, "devPtr"), In(CPTR, "symbol"), by_hand=True)
call("cudaGetSymbolSize", Out(SIZE, "size"), In(CPTR, "symbol"), by_hand=True)
call("cudaMemAdvise", In(CPTR, "devPtr"), In(SIZE, "count"), In(cudaMemoryAdvise, "advice"),
     In(I32, "device"), editions="..12", driver="cuMemAdvise")
call("cudaMemAdvise", In(CPTR, "devPtr"), In(SIZE, "count"), In(cudaMemoryAdvise, "advice"),
     In(cudaMemLocation, "location"), editions="13..", driver="cuMemAdvise_v2")
call("cudaMemAdvise_v2", In(CPTR, "devPtr"), In(SIZE, "count"), In(cudaMemoryAdvise, "advice"),
     In(cudaMemLocation, "location"), editions="12", driver="cuMemAdvise_v2")
call("cudaMemDiscardAndPrefetchBatchAsync", Out(PTR, "dptrs"), Out(SIZE, "sizes"),
     In(SIZE, "count"), Out(cudaMemLocation, "prefetchLocs"), Out(SIZE, "prefetchLocIdxs"),
     In(SIZE, "numPrefetchLocs"), In(U64, "flags"), In(cudaStream_t, "stream"), ptds=True,
     editions="13..", driver="cuMemDiscardAndPrefetchBatchAsync")
call("cudaMemDiscardBatchAsync", Out(PTR, "dptrs"), Out(SIZE, "sizes"), In(SIZE, "count"),
     In(U64, "flags"), In(cudaStream_t, "stream"), ptds=True, editions="13..",
     driver="cuMemDiscardBatchAsync")
call("cudaMemPrefetchAsync", In(CPTR, "devPtr"), In(SIZE, "count"), In(I32, "dstDevice"),
     In(cudaStream_t, "stream"), ptds=True, editions="..12", driver="cuMemPrefetchAsync")
call("cudaMemPrefetchAsync", In(CPTR, "devPtr"), In(SIZE, "count"),
     In(cudaMemLocation, "location"), In(U32, "flags"), In(cudaStream_t, "stream"), ptds=True,
     editions="13..", driver="cuMemPrefetchAsync_v2")
call("cudaMemPrefetchAsync_v2", In(CPTR, "devPtr"), In(SIZE, "count"),
     In(cudaMemLocation, "location"), In(U32, "flags"), In(cudaStream_t, "stream"), ptds=True,
     editions="12", driver="cuMemPrefetchAsync_v2")
call("cudaMemPrefetchBatchAsync", Out(PTR, "dptrs"), Out(SIZE, "sizes"), In(SIZE, "count"),
     Out(cudaMemLocation, "prefetchLocs"), Out(SIZE, "prefetchLocIdxs"),
     In(SIZE, "numPrefetchLocs"), In(U64, "flags"), In(cudaStream_t, "stream"), ptds=True,
     editions="13..", driver="cuMemPrefetchBatchAsync")
call("cudaMemRangeGetAttribute", In(PTR, "data"), In(SIZE, "dataSize"),
     In(cudaMemRangeAttribute, "attribute"), In(CPTR, "devPtr"), In(SIZE, "count"),
     driver="cuMemRangeGetAttribute")
call("cudaMemRangeGetAttributes", Out(PTR, "data"), Out(SIZE, "dataSizes"),
     Out(cudaMemRangeAttribute, "attributes"), In(SIZE, "numAttributes"), In(CPTR, "devPtr"),
     In(SIZE, "count"), driver="cuMemRangeGetAttributes")
call("cudaMemcpy", In(PTR, "dst"), In(CPTR, "src"), In(SIZE, "count"), In(cudaMemcpyKind, "kind"),
     ptds=True, by_hand=True)
call("cudaMemcpy2D", In(PTR, "dst"), In(SIZE, "dpitch"), In(CPTR, "src"), In(SIZE, "spitch"),
     In(SIZE, "width"), In(SIZE, "height"), In(cudaMemcpyKind, "kind"), ptds=True,
     by_hand=True)
call("cudaMemcpy2DArrayToArray", In(cudaArray_t, "dst"), In(SIZE, "wOffsetDst"),
     In(SIZE, "hOffsetDst"), In(cudaArray_const_t, "src"), In(SIZE, "wOffsetSrc"),
     In(SIZE, "hOffsetSrc"), In(SIZE, "width"), In(SIZE, "height"), In(cudaMemcpyKind, "kind"),
     ptds=True, by_hand=True)
call("cudaMemcpy2DAsync", In(PTR, "dst"), In(SIZE, "dpitch"), In(CPTR, "src"), In(SIZE, "spitch"),
     In(SIZE, "width"), In(SIZE, "height"), In(cudaMemcpyKind, "kind"), In(cudaStream_t, "stream"),
     ptds=True, by_hand=True)
call("cudaMemcpy2DFromArray", In(PTR, "dst"), In(SIZE, "dpitch"), In(cudaArray_const_t, "src"),
     In(SIZE, "wOffset"), In(SIZE, "hOffset"), In(SIZE, "width"), In(SIZE, "height"),
     In(cudaMemcpyKind, "kind"), ptds=True, by_hand=True)
call("cudaMemcpy2DFromArrayAsync", In(PTR, "dst"), In(SIZE, "dpitch"),
     In(cudaArray_const_t, "src"), In(SIZE, "wOffset"), In(SIZE, "hOffset"), In(SIZE, "width"),
     In(SIZE, "height"), In(cudaMemcpyKind, "kind"), In(cudaStream_t, "stream"), ptds=True,
     by_hand=True)
call("cudaMemcpy2DToArray", In(cudaArray_t, "dst"), In(SIZE, "wOffset"), In(SIZE, "hOffset"),
     In(CPTR, "src"), In(SIZE, "spitch"), In(SIZE, "width"), In(SIZE, "height"),
     In(cudaMemcpyKind, "kind"), ptds=True, by_hand=True)
call("cudaMemcpy2DToArrayAsync", In(cudaArray_t, "dst"), In(SIZE, "wOffset"), In(SIZE, "hOffset"),
     In(CPTR, "src"), In(SIZE, "spitch"), In(SIZE, "width"), In(SIZE, "height"),
     In(cudaMemcpyKind, "kind"), In(cudaStream_t, "stream"), ptds=True, by_hand=True)
call("cudaMemcpy3D", In(Ref(cudaMemcpy3DParms), "p"), ptds=True, by_hand=True)
call("cudaMemcpy3DAsync", In(Ref(cudaMemcpy3DParms), "p"), In(cudaStream_t, "stream"), ptds=True,
     by_hand=True)
call("cudaMemcpy3DBatchAsync", In(SIZE, "numOps"), Out(cudaMemcpy3DBatchOp, "opList"),
     Out(SIZE, "failIdx"), In(U64, "flags"), In(cudaStream_t, "stream"), ptds=True, editions="12",
     driver="cuMemcpy3DBatchAsync")
call("cudaMemcpy3DBatchAsync", In(SIZE, "numOps"), Out(cudaMemcpy3DBatchOp, "opList"),
     In(U64, "flags"), In(cudaStream_t, "stream"), ptds=True, editions="13..",
     driver="cuMemcpy3DBatchAsync_v2")
call("cudaMemcpy3DPeer", In(Ref(cudaMemcpy3DPeerParms), "p"), ptds=True, by_hand=True)
call("cudaMemcpy3DPeerAsync", In(Ref(cudaMemcpy3DPeerParms), "p"), In(cudaStream_t, "stream"),
     ptds=True, by_hand=True)
call("cudaMemcpy3DWithAttributesAsync", Out(cudaMemcpy3DBatchOp, "op"), In(U64, "flags"),
     In(cudaStream_t, "stream"), ptds=True, editions="13..", since=13040,
     driver="cuMemcpy3DBatchAsync_v2(1, op, flags, stream)")
call("cudaMemcpyAsync", In(PTR, "dst"), In(CPTR, "src"), In(SIZE, "count"),
     In(cudaMemcpyKind, "kind"), In(cudaStream_t, "stream"), ptds=True, by_hand=True)
call("cudaMemcpyBatchAsync", Out(PTR, "dsts"), Out(PTR, "srcs"), Out(SIZE, "sizes"),
     In(SIZE, "count"), Out(cudaMemcpyAttributes, "attrs"), Out(SIZE, "attrsIdxs"),
     In(SIZE, "numAttrs"), Out(SIZE, "failIdx"), In(cudaStream_t, "stream"), ptds=True,
     editions="12", driver="cuMemcpyBatchAsync")
call("cudaMemcpyBatchAsync", In(Ptr("void *const *"), "dsts"),
     In(Ptr("const void *const *"), "srcs"), In(Ref(SIZE), "sizes"), In(SIZE, "count"),
     Out(cudaMemcpyAttributes, "attrs"), Out(SIZE, "attrsIdxs"), In(SIZE, "numAttrs"),
     In(cudaStream_t, "stream"), ptds=True, editions="13..", driver="cuMemcpyBatchAsync_v2")
call("cudaMemcpyFromSymbolAsync", In(PTR, "dst"), In(CPTR, "symbol"), In(SIZE, "count"),
     In(SIZE, "offset"), In(cudaMemcpyKind, "kind"), In(cudaStream_t, "stream"), ptds=True,
     by_hand=True)
call("cudaMemcpyPeer", In(PTR, "dst"), In(I32, "dstDevice"), In(CPTR, "src"), In(I32, "srcDevice"),
     In(SIZE, "count"), by_hand=True)
call("cudaMemcpyPeerAsync", In(PTR, "dst"), In(I32, "dstDevice"), In(CPTR, "src"),
     In(I32, "srcDevice"), In(SIZE, "count"), In(cudaStream_t, "stream"),
     by_hand=True)
call("cudaMemcpyToSymbolAsync", In(CPTR, "symbol"), In(CPTR, "src"), In(SIZE, "count"),
     In(SIZE, "offset"), In(cudaMemcpyKind, "kind"), In(cudaStream_t, "stream"), ptds=True,
     by_hand=True)
call("cudaMemcpyWithAttributesAsync", In(PTR, "dst"), In(CPTR, "src"), In(SIZE, "size"),
     Out(cudaMemcpyAttributes, "attr"), In(cudaStream_t, "stream"), ptds=True, editions="13..",
     since=13040, by_hand=True)
call("cudaMemset", In(PTR, "devPtr"), In(I32, "value"), In(SIZE, "count"), ptds=True,
     by_hand=True)
call("cudaMemset2D", In(PTR, "devPtr"), In(SIZE, "pitch"), In(I32, "value"), In(SIZE, "width"),
     In(SIZE, "height"), ptds=True, by_hand=True)
call("cudaMemset2DAsync", In(PTR, "devPtr"), In(SIZE, "pitch"), In(I32, "value"),
     In(SIZE, "width"), In(SIZE, "height"), In(cudaStream_t, "stream"), ptds=True,
     by_hand=True)
call("cudaMemset3D", In(cudaPitchedPtr, "pitchedDevPtr"), In(I32, "value"),
     In(cudaExtent, "extent"), ptds=True, by_hand=True)
call("cudaMemset3DAsync", In(cudaPitchedPtr, "pitchedDevPtr"), In(I32, "value"),
     In(cudaExtent, "extent"), In(cudaStream_t, "stream"), ptds=True, by_hand=True)
call("cudaMemsetAsync", In(PTR, "devPtr"), In(I32, "value"), In(SIZE, "count"),
     In(cudaStream_t, "stream"), ptds=True, by_hand=True)
call("cudaMemcpyFromSymbol", In(PTR, "dst"), In(CPTR, "symbol"), In(SIZE, "count"),
     In(SIZE, "offset"), In(cudaMemcpyKind, "kind"), ptds=True, by_hand=True)
call("cudaMemcpyToSymbol", In(CPTR, "symbol"), In(CPTR, "src"), In(SIZE, "count"),
     In(SIZE, "offset"), In(cudaMemcpyKind, "kind"), ptds=True, by_hand=True)
