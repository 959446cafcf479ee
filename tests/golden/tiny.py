"""A tiny API with one of everything that a spec can say. expected/ has the emitters' output for it,
and run.py compares them."""

api(prefix="tiny", result="tinyResult", headers=["tiny.h"], after=None,
    short="TINY_BAD_VALUE")
export("tinyHello")
kind("memory")
device_memory(["memory"], ["Open"])

const("TINY_NAME_MAX", 16)

enum("tinyResult",
     TINY_OK=(0, "no error"),
     TINY_BAD_VALUE=(1, "a value that makes no \"sense\""),
     TINY_BROKEN=-7,
     TINY_ALSO_OK=0)
enum("tinyShape", TINY_CIRCLE=1, TINY_SQUARE=2, TINY_DISC=3)

alias("tinyAddress", U64, code="x64")
alias("tinyCount", U32)
handle("tinyStream", "stream")
handle("tinyThing", "thing", target="void")
func("tinyCallback", "void", "tinyStream stream, void *data")

struct("tinyPoint", F(F32, "x"), F(F64, "y"), F(I16, "layer", 3), F(CHAR, "name", 16))

union("tinyBits", F(U64, "word"), F(U8, "bytes", 8))

union("tinyOp",
      F(tinyShape, "shape"),
      F(inner("struct", F(tinyShape, "shape"), F(F32, "radius")), "circle"),
      F(inner("struct", F(tinyShape, "shape"), F(U32, "width"), F(U32, "height")), "square"),
      F(U64, "pad", 4),
      tag="shape", cases={1: "circle", 2: "square", 3: "circle"})

union("tinyValue", F(U32, "number"), F(tinyPoint, "point"), F(CHAR, "pad", 64),
      cases={1: "number", 2: "point"})

struct("tinyConfig",
       F(tinyShape, "shape"),
       F(inner("union", F(F32, "radius"), F(inner("struct", F(U32, "w"), F(U32, "h")), "size"),
               F(U64, "reserved", 4), cases={1: "radius", 2: "size"}), None, tag="shape"),
       F(Ref(tinyPoint, mut=True), "origin"),
       F(Array(tinyOp, "opCount"), "ops"),
       F(tinyCount, "opCount"),
       F(Bytes("dataSize"), "data"),
       F(SIZE, "dataSize"),
       F(STR, "label"),
       F(PTR, "user"),
       F(tinyValue, "value", tag="shape"),
       F(tinyBits, "bits"),
       align=16)

struct("tinyLaunch", F(U32, "blocks"), F(U32, "threads", 2), F(tinyStream, "stream"))

struct("tinyMove",
       F(U32, "version"),
       F(tinyShape, "shape"),
       F(tinyThing, "from", when=("shape", 1, 2)),
       F(tinyThing, "to"),
       F(DPTR, "window"),
       F(CPTR, "host", when=("shape", 2)),
       F(Array(tinyStream, "streams"), "waits"),
       F(U32, "streams"))

call("tinyInit", since=1000, after="none")
call("tinyOpen", Out(tinyThing, "thing", new="thing"), In(STR, "name"),
     In(Ref(tinyConfig), "config"), since=1000, does="make")
call("tinyOpen_v2", Out(tinyThing, "thing", new="thing"), In(STR, "name"),
     InOut(tinyConfig, "config"), In(U32, "flags"), since=2000, does="make")
call("tinyClose", In(tinyThing, "thing", free="thing"), since=1000, does="end")
call("tinyAlloc", Out(tinyAddress, "address", new="memory"), In(SIZE, "bytes"), since=1000,
     does="make",
     memory=Roles("alloc", out="*address", bytes="bytes", shape="TINY_SQUARE", levels=1),
     null=Roles("alloc", "address", "bytes"))
call("tinyCopy", In(tinyAddress, "to", extent="bytes"), In(Bytes("bytes"), "from"),
     In(SIZE, "bytes"), since=1000, ptds=1500, blocks=True, does="copy", size="bytes", travel=True)
call("tinyFill", In(tinyAddress, "to", extent=Span("width", "height", "pitch", of=4)),
     In(CPTR, "from", by_hand="read later", extent="4"), In(U32, "width"), In(U32, "height"),
     In(SIZE, "pitch"), since=1000, does="fill")
call("tinyRead", Out(Bytes("*size"), "buffer", opt=True), InOut(SIZE, "size"),
     In(tinyStream, "stream"), since=1000, ptds=True, does="order")
call("tinyName", Out(TextBuf("length"), "name"), In(I32, "length"), In(tinyThing, "thing"),
     since=1000, does="ask", null={"name": "nothing"})
call("tinyText", In(tinyResult, "error"), Out(STR, "text"), since=1000, after="none",
     offline=Roles("error_text", "error", "text"))
call("tinyAsk", In(tinyThing, "thing"), Out(U32, "answer"), since=1000, does="ask")
call("tinyRun", In(tinyThing, "thing"), In(Ptr("void **"), "params", by_hand="only it knows"),
     In(tinyCallback, "callback"), In(CPTR, "data"), In(tinyStream, "stream"), since=1000,
     ptds=True, does="launch", about="thing", size="1",
     defer=Roles("launch", kernel="thing", params="&params", ptds="ptds"),
     grid=Roles("grid", width="&thing"))
call("tinySet", In(tinyShape, "shape"), In(Ref(tinyValue), "value", tag="shape"),
     Out(tinyValue, "old", tag="shape", opt=True), since=1000, ptds=True, does="set")
call("tinyRunEx", In(Ref(tinyLaunch), "launch"), In(tinyThing, "thing"),
     In(PTR, "answer", by_hand="its size is the thing's", fills=True), since=1000, ptds=True,
     stream="launch.stream", does="launch", about="thing", size="4 * launch.blocks")
call("tinyWait", In(Ref(tinyStream, mut=True), "stream"), since=1000, ptds=True, stream="*stream",
     blocks=True, header="only another header has it", does="wait")
call("tinyQuery", In(tinyStream, "stream"), since=1000, ptds=True, does="poll")
call("tinyBegin", In(I32, "device"), since=1000, does="begin_context", about="device")
call("tinyEnd", In(I32, "device"), since=1000, does="end_context")
call("tinyCapture", In(tinyStream, "stream"), since=1000, does="begin_capture")
call("tinyCaptured", In(tinyStream, "stream"), since=1000, does="end_capture")
call("tinyList", Out(Array(tinyThing, "*count"), "things"), InOut(tinyCount, "count"),
     In(Array(tinyShape, "2 * shapes", mut=True), "filter"), In(U32, "shapes"), since=1000,
     does="ask", null={"count": 1})
call("tinyMoveAll", In(Array(tinyMove, "count"), "moves"), In(U32, "count"),
     Out(SIZE, "failed", opt=True, on="failure"),
     Out(tinyThing, "culprit", opt=True, on=["TINY_BROKEN", "TINY_BAD_VALUE"]), since=1000,
     does="move")
call("tinyMoveOne", InOut(tinyMove, "move"), since=1000, does="move",
     travel=Roles("move", "move"), relay=Roles("plain"),
     memory=Roles("move", key="&move", shape="move.shape", version="*move.version"))
call("tinyLookUp", In(STR, "name"), Out(PTR, "function"), since=1000,
     by_hand="it hands out our own functions", does="ask")
local("it ends others", "tinyCl*")
area("work", "tinyRun*", "tinyCopy", "tinyFill", "tinyMove*")
area("rest", "tiny*")
uncounted("a thing is no memory", "tinyOpen", "tinyOpen_v2")
