"""Streams and events."""

call("cudaEventCreate", Out(cudaEvent_t, "event"), driver="cuEventCreate(event, 0)")
call("cudaEventCreateWithFlags", Out(cudaEvent_t, "event"), In(U32, "flags"),
     driver="cuEventCreate")
call("cudaEventDestroy", In(cudaEvent_t, "event"), driver="cuEventDestroy_v2")
call("cudaEventElapsedTime", Out(F32, "ms"), In(cudaEvent_t, "start"), In(cudaEvent_t, "end"),
     editions="..12", by_hand=True, as_="cudaEventElapsedTime_12")
call("cudaEventElapsedTime", Out(F32, "ms"), In(cudaEvent_t, "start"), In(cudaEvent_t, "end"),
     editions="13..", by_hand=True)
call("cudaEventElapsedTime_v2", Out(F32, "ms"), In(cudaEvent_t, "start"), In(cudaEvent_t, "end"),
     editions="12", by_hand=True, as_="cudaEventElapsedTime")
call("cudaEventQuery", In(cudaEvent_t, "event"), driver="cuEventQuery")
call("cudaEventRecord", In(cudaEvent_t, "event"), In(cudaStream_t, "stream"), ptds=True,
     driver="cuEventRecord")
call("cudaEventRecordWithFlags", In(cudaEvent_t, "event"), In(cudaStream_t, "stream"),
     In(U32, "flags"), ptds=True, editions="11..", driver="cuEventRecordWithFlags")
call("cudaEventSynchronize", In(cudaEvent_t, "event"), driver="cuEventSynchronize")
call("cudaLaunchHostFunc", In(cudaStream_t, "stream"), In(cudaHostFn_t, "fn"), In(PTR, "userData"),
     ptds=True, driver="cuLaunchHostFunc")
call("cudaLaunchHostFunc_v2", In(cudaStream_t, "stream"), In(cudaHostFn_t, "fn"),
     In(PTR, "userData"), In(U32, "syncMode"), ptds=True, editions="13..", since=13040,
     by_hand=True)
call("cudaStreamAddCallback", In(cudaStream_t, "stream"), In(cudaStreamCallback_t, "callback"),
     In(PTR, "userData"), In(U32, "flags"), ptds=True, by_hand=True)
call("cudaStreamAttachMemAsync", In(cudaStream_t, "stream"), In(PTR, "devPtr"), In(SIZE, "length"),
     In(U32, "flags"), ptds=True, driver="cuStreamAttachMemAsync")
call("cudaStreamCopyAttributes", In(cudaStream_t, "dstStream"), In(cudaStream_t, "srcStream"),
     ptds=True, editions="11..", driver="cuStreamCopyAttributes")
call("cudaStreamCreate", Out(cudaStream_t, "pStream"), driver="cuStreamCreate(pStream, 0)")
call("cudaStreamCreateWithFlags", Out(cudaStream_t, "pStream"), In(U32, "flags"),
     driver="cuStreamCreate")
call("cudaStreamCreateWithPriority", Out(cudaStream_t, "pStream"), In(U32, "flags"),
     In(I32, "priority"), driver="cuStreamCreateWithPriority")
call("cudaStreamDestroy", In(cudaStream_t, "stream"), driver="cuStreamDestroy_v2")
call("cudaStreamGetAttribute", In(cudaStream_t, "stream"), In(cudaLaunchAttributeID, "attr"),
     Out(cudaLaunchAttributeValue, "value"), ptds=True, editions="11..", by_hand=True)
call("cudaStreamGetDevResource", In(cudaStream_t, "hStream"), In(PTR, "resource", c="void *"),
     In(cudaDevResourceType, "type"), ptds=True, editions="13..", since=13040,
     missing="it needs a driver call that came after CUDA 13.0")
call("cudaStreamGetDevice", In(cudaStream_t, "hStream"), Out(I32, "device"), ptds=True,
     editions="12..", driver="cuStreamGetDevice")
call("cudaStreamGetFlags", In(cudaStream_t, "hStream"), Out(U32, "flags"), ptds=True,
     driver="cuStreamGetFlags")
call("cudaStreamGetId", In(cudaStream_t, "hStream"), Out(U64, "streamId"), ptds=True,
     editions="12..", driver="cuStreamGetId")
call("cudaStreamGetPriority", In(cudaStream_t, "hStream"), Out(I32, "priority"), ptds=True,
     driver="cuStreamGetPriority")
call("cudaStreamIsCapturing", In(cudaStream_t, "stream"),
     Out(cudaStreamCaptureStatus, "pCaptureStatus"), ptds=True, driver="cuStreamIsCapturing")
call("cudaStreamQuery", In(cudaStream_t, "stream"), ptds=True, driver="cuStreamQuery")
call("cudaStreamSetAttribute", In(cudaStream_t, "stream"), In(cudaLaunchAttributeID, "attr"),
     In(Ref(cudaLaunchAttributeValue), "param"), ptds=True, editions="11..", by_hand=True)
call("cudaStreamSynchronize", In(cudaStream_t, "stream"), ptds=True, driver="cuStreamSynchronize")
call("cudaStreamWaitEvent", In(cudaStream_t, "stream"), In(cudaEvent_t, "event"), In(U32, "flags"),
     ptds=True, editions="..10", by_hand=True, as_="cudaStreamWaitEvent_10")
call("cudaStreamWaitEvent", In(cudaStream_t, "stream"), In(cudaEvent_t, "event"), In(U32, "flags"),
     ptds=True, editions="11..", driver="cuStreamWaitEvent")
