"""A tiny runtime API over the driver's real one, with one of everything that gen/runtime.py knows.
expected_runtime/ has the emitter's output for it."""

api("cuda", "cudaError_t", ["cuda_runtime_api.h"])

enum("cudaError_t", cudaSuccess=(0, "no error"), cudaErrorInvalidValue=(1, "invalid argument"))
enum("cudaTinyKind", cudaTinyOne=1, cudaTinyTwo=2)

handle("cudaStream_t", "stream", "struct CUstream_st")
struct("cudaTinyPlace", F(I32, "type"), F(I32, "id"))
struct("cudaTinyProp", F(CHAR, "name", 8), F(I32, "added"))
struct("cudaTinyProp_12", F(CHAR, "name", 8))
typedefs("cudaTinyPlace")

call("cudaTinyCreate", Out(cudaStream_t, "stream"), driver="cuStreamCreate(stream, 0)")
call("cudaTinyWait", In(cudaStream_t, "stream"), ptds=True, driver="cuStreamSynchronize")
call("cudaTinyFree", In(PTR, "memory"), editions="..12", driver="cuMemFree_v2")
call("cudaTinyAdvise", In(CPTR, "at"), In(SIZE, "count"), In(cudaTinyKind, "advice"),
     In(cudaTinyPlace, "place"), editions="13..", driver="cuMemAdvise_v2")
call("cudaTinyProperties", Out(cudaTinyProp_12, "prop"), editions="..12", by_hand=True,
     as_="cudaTinyProperties_12")
call("cudaTinyProperties", Out(cudaTinyProp, "prop"), editions="13..", by_hand=True)
call("cudaTinyCopy", In(PTR, "to"), In(CPTR, "from"), ptds=True, by_hand=True)
call("cudaTinyLast", by_hand=True, plain=True)
call("cudaTinyNew", In(I32, "x"), editions="13..", since=13040, missing="not documented")
call("cudaTinyGL", missing="graphics", header="cuda_gl_interop.h")

without_context("cudaTinyCre*", "cudaTinyGL")
without_context("cudaTinyWait", editions="12")

export("cudaTinyName")
export("cudaTinyOld", editions="..11")
