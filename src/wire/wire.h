/* The wire: what a client and its worker say to each other, whatever carries it. docs/wire.md.
 *
 *   client thread ──channel──> worker thread      messages, in order; each has a ticket
 *                 <──channel──                    answers, only to messages that want one
 *
 * A channel belongs to one thread of the client and has one thread in the worker, so waiting for a
 * stream in one holds up nobody else. The order between channels is that of the tickets: the worker
 * takes messages of all channels in the order 1, 2, 3, ..., however they arrive.
 *
 * Invariants:
 * 1. Numbers are little-endian; a message begins at a multiple of HED_MSG_ALIGN; struct hed_msg is
 *    its first bytes, and size counts them.
 * 2. Every ticket is used exactly once, by the client; a channel's tickets only go up.
 * 3. Handles are the client's everywhere on the wire. Device addresses are the same on both sides.
 * 4. What arrives is not trusted: it is copied out of shared memory before it is looked at, and
 *    every length, offset, handle, number and state is checked by the worker.
 */
#pragma once

#include <stdint.h>

#include "base/copy.h"

#define HED_WIRE_MAJOR 2 /* changes when old and new cannot talk */
#define HED_WIRE_MINOR 0 /* changes when something was added that the other side may lack */

#define HED_MSG_ALIGN 16u
#define HED_MSG_MAX 65536u /* bytes of a message, its head included, bulk excluded */
#define HED_BULK_CHUNK (UINT32_C(1) << 20) /* most bulk that belongs to one message */

/* What a message is. Append only. */
enum hed_msg_kind {
    HED_MSG_NONE,
    HED_MSG_CALL,   /* a CUDA call: `call` is its number; body: hed_call_body */
    HED_MSG_NVML,   /* an NVML call, likewise */
    HED_MSG_HELLO,  /* first of a session: struct hed_hello -> struct hed_welcome, devices */
    HED_MSG_ATTACH, /* first of any other channel: struct hed_attach */
    HED_MSG_ARENA,  /* where the client can have its addresses: struct hed_arena_offer */
    HED_MSG_LEASE,  /* more memory that may be mapped unasked: struct hed_lease */
    HED_MSG_MAP,    /* memory behind addresses: struct hed_map */
    HED_MSG_UNMAP,
    HED_MSG_LAUNCH,        /* a kernel: struct hed_launch_body, attributes, parameters */
    HED_MSG_COPY_IN,       /* bulk follows: to device memory or an array; struct hed_copy_body */
    HED_MSG_COPY_OUT,      /* answered with bulk: from device memory or an array */
    HED_MSG_COPY_DEFERRED, /* like COPY_OUT, but the bytes come as DATA before a later answer */
    HED_MSG_IMAGE,         /* is an image there, by hash? else bulk follows in later ones */
    HED_MSG_OPEN,          /* load a library from an image: describes what is in it */
    HED_MSG_KERNEL,        /* a kernel by name: its layout and attributes */
    HED_MSG_HOST,          /* a function of the program's, in stream order: struct hed_host_body */
    HED_MSG_MARK,          /* write the number into the stream's slot when it is reached */
    HED_MSG_PING,      /* nothing; for its answer. From the worker: a sign of life, over sockets */
    HED_MSG_BYE,       /* the client ends: nothing is waited for */
    HED_MSG_SYNC_HOST, /* sockets: pages of mapped and managed memory that changed */

    /* From the worker. */
    HED_MSG_ANSWER, /* struct hed_answer, then what the message's kind says */
    HED_MSG_DATA,   /* bulk for an address of the client: struct hed_data */
    HED_MSG_PRINT,  /* text that kernels printed: to the client's standard output */
    HED_MSG_RUN,    /* on the callback channel: run a function of the program's: struct hed_run */

    /* From the client again. */
    HED_MSG_ARRAY, /* an array or mipmapped array comes or goes: struct hed_array_body */
    HED_MSG_GRAPH, /* a step of making an executable graph: struct hed_graph_body */
    HED_MSG_FETCH, /* not in the order: what is to come before answers, and that has come by now */
    HED_MSG_WAIT,  /* for the stream of the head, or, where that is 0, for its context */
    HED_MSG_KINDS
};

enum hed_msg_flags {
    HED_MSG_WANTS_ANSWER = 1,
    HED_MSG_BLOCKS = 2, /* may take long: the next ticket may go on meanwhile */
};

struct hed_msg {
    uint32_t size;     /* bytes, this head included; at most HED_MSG_MAX */
    uint16_t kind;     /* enum hed_msg_kind */
    uint16_t call;     /* of HED_MSG_CALL and HED_MSG_NVML */
    uint32_t flags;    /* enum hed_msg_flags */
    uint32_t thread;   /* of the client: which channel; 0 is the first */
    uint64_t ticket;   /* 0: not in the order (answers, attach, bulk of images) */
    uint64_t context;  /* the thread's current one, as the client names it; 0: none */
    uint64_t stream;   /* it is on, as the client names it; 0: none */
    uint64_t number;   /* of the work in its stream; 0: none */
    uint64_t bulk;     /* bytes that follow in the channel's bulk pipe; at most HED_BULK_CHUNK */
    uint64_t reserved; /* HED_MSG_MARK: the slot; HED_MSG_RUN: comes back as it was; else 0 */
};

/* Every answer begins like this. `failed` is the first asynchronous failure of a context, told in
 * every answer from then on. */
struct hed_answer {
    struct hed_msg head; /* ticket: of the message that is answered; number: pieces of copies that
                          * were to come later and have been sent, on whatever channel, before it */
    int32_t result;      /* CUresult or nvmlReturn_t of the call */
    int32_t failed;      /* CUresult; 0: none */
    uint64_t failed_context;
};

/* The body of HED_MSG_CALL: the arguments as gen/cuda_wire.h has them (request), and the names of
 * the objects that it makes, in the order of hed_cuda_each_new(). Its answer: the reply, if the
 * call has outputs and succeeded. */
struct hed_call_body {
    uint32_t request; /* bytes of the request, which follow */
    uint32_t names;   /* 64-bit names behind it, at the next multiple of 8 */
};

/* ---- beginning ------------------------------------------------------------------------------- */

/* The first bytes on any connection, before TLS: the listener decides by them who gets it. */
#define HED_PREFACE_MAGIC "HEDDLE1\n"
enum hed_preface_kind { HED_PREFACE_NEW = 1, HED_PREFACE_CHANNEL, HED_PREFACE_STATUS };
struct hed_preface {
    char magic[8];
    uint32_t kind;       /* enum hed_preface_kind */
    uint32_t reserved;   /* 0 */
    uint8_t session[16]; /* of HED_PREFACE_CHANNEL: whose; no secret */
};

enum hed_transport_id { HED_TRANSPORT_SHM = 1, HED_TRANSPORT_UNIX, HED_TRANSPORT_TCP };

struct hed_hello {
    struct hed_msg head;
    uint16_t major, minor;
    uint32_t transport; /* enum hed_transport_id */
    uint64_t cuda_ids;  /* hash of the calls' numbers and shapes: gen/cuda_hash.h */
    uint64_t nvml_ids;
    uint64_t capabilities; /* enum hed_capabilities that the client can use */
    uint32_t pid;          /* for the log */
    uint32_t page;         /* bytes */
    char version[32];      /* of heddle */
    char name[64];         /* of the program, for the log and the status */
    char visible[256];     /* CUDA_VISIBLE_DEVICES; "-" + NUL: not set */
    char token[128];       /* over TLS, where the server wants one */
};

enum hed_capabilities {
    HED_CAN_SLOTS = 1,      /* completion words in shared memory */
    HED_CAN_SHARED_HEAP = 2 /* pinned memory is shared */
};

#define HED_WELCOME_TEXT 256
struct hed_welcome {
    struct hed_answer head; /* result: CUDA_SUCCESS, or the client is refused and `text` says why */
    uint16_t major, minor;
    uint32_t device_count; /* so many struct hed_wire_device follow, in messages of their own */
    uint64_t capabilities; /* of both */
    uint8_t session[16];   /* what channels name in their preface */
    uint8_t secret[16];    /* what they show in HED_MSG_ATTACH */
    uint64_t stride;   /* bytes of addresses from a device's share to the next; the host's last */
    uint64_t usable;   /* bytes of each that the client may use, from its beginning */
    uint32_t map_unit; /* bytes; memory is mapped in multiples of it */
    uint32_t slots;    /* words in the slot page */
    uint32_t driver_version;
    uint32_t backend; /* enum hed_wire_backend */
    char text[HED_WELCOME_TEXT];
};

enum hed_wire_backend { HED_BACKEND_GPU = 1, HED_BACKEND_CPU, HED_BACKEND_NULL };

#define HED_WIRE_ATTRIBUTES 160
struct hed_wire_device { /* struct hed_profile_device with fixed sizes */
    struct hed_msg head; /* HED_MSG_ANSWER */
    char name[96], short_name[32], brand[16], architecture[16], vbios[32];
    int32_t major, minor;
    uint64_t memory, free;
    int32_t attributes[HED_WIRE_ATTRIBUTES];
    uint64_t has_attribute[(HED_WIRE_ATTRIBUTES + 63) / 64];
    uint8_t accepts_newer_ptx, clusters, real /* runs machine code */, reserved[5];
    uint8_t uuid[16];
    int32_t pci_domain, pci_bus, pci_slot, index;
    uint32_t pci_device_id, pci_subsystem_id;
    uint32_t clock_graphics, clock_sm, clock_memory, clock_video;
    uint32_t power_limit, power_idle;
    uint32_t temperature_idle, temperature_slowdown, temperature_shutdown;
    uint32_t pcie_generation, pcie_width, fans, reserved2;
};

struct hed_attach {
    struct hed_msg head; /* thread: the channel's number */
    uint8_t session[16], secret[16];
    uint32_t purpose; /* enum hed_channel_purpose */
    uint32_t reserved;
};

enum hed_channel_purpose { HED_CHANNEL_CALLS, HED_CHANNEL_CALLBACKS };

/* The worker offers a base; the client takes it (answer 0) or says no and is offered another. */
struct hed_arena_offer {
    struct hed_msg head;
    uint64_t base;    /* from the client: 0 asks for an offer; else it has reserved this one */
    uint64_t refused; /* a base that the client cannot have; 0: none yet */
};
struct hed_arena_answer {
    struct hed_answer head;
    uint64_t base; /* devices' shares in order, then the host's; 0: there is none left to offer */
};

/* ---- memory ---------------------------------------------------------------------------------- */

struct hed_lease {
    struct hed_msg head;
    int32_t device; /* ordinal */
    uint32_t reserved;
    uint64_t want;  /* bytes, more than the client has now; the answer: what it got */
    uint64_t least; /* with less than that nothing is won */
    uint64_t give;  /* bytes that it gives back */
};
struct hed_lease_answer {
    struct hed_answer head;
    uint64_t granted; /* bytes in addition; 0 and OUT_OF_MEMORY. Where nothing was wanted: bytes
                       * that the client could have in all, those included that it has */
};

enum hed_map_kind {
    HED_MAP_DEVICE,   /* new memory at addresses; paid from the lease */
    HED_MAP_HOST,     /* pinned, shared on shm; MAP is answered */
    HED_MAP_PHYSICAL, /* the program's own (cuMemCreate), at no address; paid from the lease */
    HED_MAP_VIEW,     /* that at addresses (cuMemMap), which nobody may use yet */
    HED_MAP_ACCESS,   /* MAP only: what all may do there (cuMemSetAccess) */
};
struct hed_map { /* HED_MSG_MAP, HED_MSG_UNMAP */
    struct hed_msg head;
    uint32_t kind;  /* enum hed_map_kind */
    int32_t device; /* ordinal; -1: the host's physical memory */
    uint64_t at, size;
    uint64_t physical; /* the client's number of physical memory: HED_MAP_PHYSICAL, HED_MAP_VIEW */
    uint32_t access;   /* CUmemAccess_flags, of HED_MAP_ACCESS */
    uint32_t reserved;
};

/* ---- work ------------------------------------------------------------------------------------ */

struct hed_launch_body {
    struct hed_msg head;
    uint64_t function; /* CUfunction or CUkernel, as the client names it */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
    uint32_t attributes; /* CUlaunchAttribute that follow, each 72 bytes; events are names */
    uint32_t params;     /* bytes of parameters behind them, as the kernel's layout has them */
    uint32_t cooperative;
};

/* A copy, or a piece of one, between memory of the client and memory or an array of the device: the
 * client's side is `from` of HED_MSG_COPY_IN, and `to` of the others. Up to HED_COPY_INSIDE bytes
 * may lie behind this struct, or behind the answer to HED_MSG_COPY_OUT, instead of in bulk. */
#define HED_COPY_INSIDE 4096u
struct hed_copy_body {
    struct hed_msg head;
    struct hed_copy copy; /* bulk is the bytes of its box, row by row */
};

/* Bytes of a HED_MSG_COPY_DEFERRED; no bulk: they will not come, the copy failed. Or, without a
 * pitch, bytes of memory that both sides have (HED_MSG_SYNC_HOST). */
struct hed_data {
    struct hed_msg head;     /* bulk: the bytes of the box; number: which piece, from 1 */
    struct hed_copy_side to; /* memory of the client */
    struct hed_box box;
};

/* HED_MSG_ARRAY: the names of a mipmap's levels follow. */
enum hed_array_op { HED_ARRAY_CREATE = 1 /* answered */, HED_ARRAY_DESTROY };
struct hed_array_body {
    struct hed_msg head;
    uint64_t name;   /* of the array or mipmapped array */
    uint32_t op;     /* enum hed_array_op; the rest is HED_ARRAY_CREATE's */
    uint32_t levels; /* of a mipmap: so many names follow; 0: an array */
    uint64_t width, height, depth;
    uint32_t format, channels, flags, reserved;
};

/* HED_MSG_GRAPH: graphs are told node by node, each channel its own. A graph is begun; nodes are
 * added to it, each behind others by position; a graph begun inside of another ends as a node of
 * that; the outermost ends as an executable graph with a name, which it may have had before: then
 * it is updated, or made anew where it cannot be. Positions (32 bits each) follow the body and, at
 * the next multiple of 8, the node's own struct.
 *
 * A conditional handle is the driver's, since kernels set it, and belongs to a graph of the
 * driver's. So a graph with such handles has a name, under which the worker keeps it: handles are
 * made for the name, and the graph is begun under it. Behind a conditional node its branches are
 * begun, by number, and ended. */
enum hed_graph_op {
    HED_GRAPH_BEGIN = 1,
    HED_GRAPH_NODE,
    HED_GRAPH_CHILD,
    HED_GRAPH_MAKE, /* may be answered */
    HED_GRAPH_DROP, /* the executable graph goes */
    /* Since 1.1. */
    HED_GRAPH_CONDITION, /* answered: struct hed_graph_condition_answer */
    HED_GRAPH_BRANCH,    /* of the conditional node that was told last */
    HED_GRAPH_END,       /* of a branch */
    HED_GRAPH_FORGET     /* the graph that was kept under a name goes */
};
struct hed_graph_body {
    struct hed_msg head; /* context: the node's */
    uint32_t op;         /* enum hed_graph_op */
    uint32_t type;       /* of HED_GRAPH_NODE: CUgraphNodeType */
    uint64_t exec;       /* of HED_GRAPH_MAKE and _DROP: the name of the executable graph; of
                          * _BEGIN, _CONDITION and _FORGET: the name of one that is kept, or 0 */
    uint64_t flags;      /* of HED_GRAPH_MAKE: of cuGraphInstantiate; of _BRANCH: which */
    uint32_t after;      /* positions that follow */
    uint32_t size;       /* bytes of the node's own, behind them */
};

struct hed_graph_kernel { /* then attributes, each 72 bytes, then parameters */
    uint64_t function;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
    uint32_t attributes;
    uint32_t params; /* bytes */
    uint32_t reserved;
};

struct hed_graph_fill {
    uint64_t to, pitch, width, height; /* width in elements */
    uint32_t value, element;
};

struct hed_graph_event { /* recorded or waited for */
    uint64_t event;
};

struct hed_graph_value { /* so many as fit: of a batch of operations on memory */
    uint32_t operation;  /* CUstreamBatchMemOpType */
    uint32_t flags;
    uint64_t at, value;
};

struct hed_graph_condition { /* behind a body of HED_GRAPH_CONDITION */
    uint32_t value, flags;
};
struct hed_graph_condition_answer {
    struct hed_answer head;
    uint64_t handle;
};

struct hed_graph_choice { /* a conditional node */
    uint64_t handle;
    uint32_t type; /* CUgraphConditionalNodeType */
    uint32_t branches;
};

struct hed_host_body {
    struct hed_msg head;
    uint64_t id;     /* of the function, in the client */
    uint32_t always; /* run after a failure too (cuStreamAddCallback) */
    uint32_t holds;  /* the stream waits until the client says it has run */
};

struct hed_run {         /* worker -> client, on the callback channel; answered with the same */
    struct hed_msg head; /* stream, number as in HED_MSG_HOST */
    uint64_t id;
    int32_t status; /* CUresult of the stream */
    uint32_t reserved;
};

_Static_assert(sizeof(struct hed_msg) == 64, "the head is one cache line");
_Static_assert(sizeof(struct hed_preface) == 32, "the preface has no padding");
