/* The wire: the messages between a client and its worker, whatever transport carries them. See
 * docs/wire.md.
 *
 *   client thread ──channel──> worker thread      messages, in order; each has a ticket
 *                 <──channel──                    answers, only to messages that want one
 *
 * A channel belongs to one thread of the client and has one thread in the worker, so waiting for a
 * stream in one blocks no other. Tickets give the order between channels: the worker handles the
 * messages of all channels in the order 1, 2, 3, ..., however they arrive.
 *
 * Invariants:
 * 1. Numbers are little-endian; a message begins at a multiple of HED_MSG_ALIGN; struct hed_msg is
 *    its first bytes, and size counts them.
 * 2. Every ticket is used exactly once, by the client; a channel's tickets only go up.
 * 3. Handles on the wire are always the client's. Device addresses are the same on both sides.
 * 4. What arrives is not trusted: it is copied out of shared memory before it is read, and the
 *    worker checks every length, offset, handle, number and state.
 */
#pragma once

#include <stdint.h>

#include "base/copy.h"

#define HED_WIRE_MAJOR 2 /* changes when old and new versions cannot talk to each other */
#define HED_WIRE_MINOR 4 /* changes when something is added that the other side may lack */

#define HED_MSG_ALIGN 16u
#define HED_MSG_MAX 65536u /* bytes of a message, including its head, without bulk */
#define HED_BULK_CHUNK (UINT32_C(1) << 20) /* most bulk that belongs to one message */

/* What a message is. Append only. */
enum hed_msg_kind {
    HED_MSG_NONE,
    HED_MSG_CALL,   /* a CUDA call: `call` is its number; body: hed_call_body */
    HED_MSG_NVML,   /* an NVML call, in the same form */
    HED_MSG_HELLO,  /* first of a session: struct hed_hello -> struct hed_welcome, devices */
    HED_MSG_ATTACH, /* first of any other channel: struct hed_attach */
    HED_MSG_ARENA,  /* where the client can reserve its addresses: struct hed_arena_offer */
    HED_MSG_LEASE,  /* more memory that may be mapped without asking: struct hed_lease */
    HED_MSG_MAP,    /* maps memory to addresses: struct hed_map */
    HED_MSG_UNMAP,
    HED_MSG_LAUNCH,        /* a kernel: struct hed_launch_body, attributes, parameters */
    HED_MSG_COPY_IN,       /* bulk follows: to device memory or an array; struct hed_copy_body */
    HED_MSG_COPY_OUT,      /* answered with bulk: from device memory or an array */
    HED_MSG_COPY_DEFERRED, /* like COPY_OUT, but the bytes come as DATA before a later answer */
    HED_MSG_IMAGE,         /* a piece of an image, as bulk */
    HED_MSG_OPEN,          /* load a library from an image: describes what is in it */
    HED_MSG_KERNEL,        /* a kernel of a library: makes a function of it, or describes it */
    HED_MSG_HOST,          /* a function of the program, in stream order: struct hed_host_body */
    HED_MSG_MARK,          /* write the number into the stream's slot when the stream comes to it */
    HED_MSG_PING,      /* does nothing, is answered. From the worker over sockets: a sign of life */
    HED_MSG_BYE,       /* the client ends: nothing is waited for */
    HED_MSG_SYNC_HOST, /* over sockets: pages of mapped and managed memory that changed */

    /* From the worker. */
    HED_MSG_ANSWER, /* struct hed_answer, then what the kind of message says */
    HED_MSG_DATA,   /* bulk for an address of the client: struct hed_data */
    HED_MSG_PRINT,  /* text that kernels printed: to the client's standard output */
    HED_MSG_RUN,    /* on the callback channel: run a function of the program: struct hed_run */

    /* From the client again. */
    HED_MSG_ARRAY, /* an array or mipmapped array is created or destroyed: struct hed_array_body */
    HED_MSG_GRAPH, /* a step in building an executable graph: struct hed_graph_body */
    HED_MSG_FETCH, /* no ticket: send what is due before answers and is ready by now */
    HED_MSG_WAIT,  /* wait for the stream in the head or, if that is 0, for its context */

    /* From the worker: its last message. */
    HED_MSG_END, /* the server ends the session: struct hed_end */

    /* From the client, since 2.1. */
    HED_MSG_PARK, /* the client closes all channels and may return: struct hed_park_answer */

    /* On a connection for orders only, since 2.2. */
    HED_MSG_ORDER,        /* from the worker: what the client is to do: struct hed_order */
    HED_MSG_ORDER_REPORT, /* from the client: how it goes: struct hed_order_report */

    /* From the worker, before an answer, since 2.3. */
    HED_MSG_REFUSED, /* what a kernel was refused while it ran: a line for people, without an end */

    /* From the client, since 2.4. */
    HED_MSG_SHARE, /* memory and events between clients of one server: struct hed_share_body */
    HED_MSG_KINDS
};

enum hed_msg_flags {
    HED_MSG_WANTS_ANSWER = 1,
    HED_MSG_BLOCKS = 2, /* may take long: the next ticket may proceed meanwhile */
};

struct hed_msg {
    uint32_t size;     /* bytes, including this head; at most HED_MSG_MAX */
    uint16_t kind;     /* enum hed_msg_kind */
    uint16_t call;     /* of HED_MSG_CALL and HED_MSG_NVML */
    uint32_t flags;    /* enum hed_msg_flags */
    uint32_t thread;   /* of the client: which channel; 0 is the first */
    uint64_t ticket;   /* 0: not ordered (answers, attach, bulk of images) */
    uint64_t context;  /* the thread's current context, by the client's name; 0 for none */
    uint64_t stream;   /* the stream of the work, by the client's name; 0 for none */
    uint64_t number;   /* of the work in its stream; 0 for none */
    uint64_t bulk;     /* bytes that follow as the channel's bulk; at most HED_BULK_CHUNK */
    uint64_t reserved; /* HED_MSG_MARK: the slot; HED_MSG_RUN: sent back unchanged; else 0 */
};

/* Every answer begins like this. `failed` is the first asynchronous failure of a context; every
 * answer contains it from then on. */
struct hed_answer {
    struct hed_msg head; /* ticket: that of the message being answered; number: pieces of deferred
                          * copies that were sent, on any channel, before it */
    int32_t result;      /* CUresult or nvmlReturn_t of the call */
    int32_t failed;      /* CUresult; 0 for none */
    uint64_t failed_context;
};

/* The worker's last words. Over shm they come over the connection, which carries nothing else. */
struct hed_end {
    struct hed_msg head;
    char text[256]; /* why, for people */
};

/* The body of HED_MSG_CALL: the arguments in the form of gen/cuda_wire.h (request), and the names
 * of the objects that the call creates, in the order of hed_cuda_each_new(). Its answer is the
 * reply, if the call has outputs and succeeded. */
struct hed_call_body {
    uint32_t request; /* bytes of the request, which follow */
    uint32_t names;   /* 64-bit names after it, at the next multiple of 8 */
};

/* ---- beginning ------------------------------------------------------------------------------- */

/* The first bytes on any connection, before TLS, by which the listener decides what to do with
 * it. */
#define HED_PREFACE_MAGIC "HEDDLE1\n"
enum hed_preface_kind {
    HED_PREFACE_NEW = 1,
    HED_PREFACE_CHANNEL,
    HED_PREFACE_STATUS, /* as JSON */
    HED_PREFACE_LIST,   /* of the clients, as a table */
    HED_PREFACE_EVICT,  /* end a client */
    HED_PREFACE_REPORT, /* the status for people */
    /* Since 2.2. */
    HED_PREFACE_ORDERS, /* a connection of a session, on which orders come: struct hed_order */
    HED_PREFACE_ORDER,  /* an operator has an order for a client: struct hed_order follows */
};
struct hed_preface {
    char magic[8];
    uint32_t kind;     /* enum hed_preface_kind */
    uint32_t reserved; /* 0 */
    union {
        uint8_t session[16]; /* of HED_PREFACE_CHANNEL, _ORDERS: the session; not secret */
        uint64_t worker;     /* of HED_PREFACE_EVICT, _ORDER: the worker's process */
    };
};

enum hed_transport_id {
    HED_TRANSPORT_SHM = 1,
    HED_TRANSPORT_UNIX,
    HED_TRANSPORT_TCP,
    HED_TRANSPORT_VM
};

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
    char visible[256];     /* CUDA_VISIBLE_DEVICES; "-" if it is not set */
    char token[128];       /* over TLS, if the server wants one */
};

enum hed_capabilities {
    HED_CAN_SLOTS = 1,       /* completion words in shared memory */
    HED_CAN_SHARED_HEAP = 2, /* pinned memory is shared */
    HED_CAN_BEAT = 4,        /* a worker gives signs of life in the memory of its channels */
    /* Since 2.1. */
    HED_CAN_CLIENT_HEAP = 8, /* the shared memory of HED_CAN_SHARED_HEAP is the client's own file */
    HED_CAN_PARK = 16,       /* HED_MSG_PARK, HED_CHANNEL_RETURN */
    HED_CAN_BASE = 32,       /* struct hed_arena_offer says how many shares, and maybe where */
    /* Since 2.2. */
    HED_CAN_ORDERS = 64, /* HED_PREFACE_ORDERS */
    /* Of a hello only: the client was sent out of device memory, and tries whether there is room
     * for it again. Servers that do not know it log every attempt. */
    HED_LOOKS_FOR_ROOM = 128,
    /* Since 2.3. */
    HED_CAN_REFUSALS = 256, /* HED_MSG_REFUSED */
    /* Since 2.4. */
    HED_CAN_SHARE = 512, /* HED_MSG_SHARE */
};

#define HED_WELCOME_TEXT 256
struct hed_welcome {
    /* result: CUDA_SUCCESS, or the client is refused and `text` says why. thread: how many channels
     * the session may have; 0 if there is no limit, or from servers before 2.4. */
    struct hed_answer head;
    uint16_t major, minor;
    uint32_t device_count; /* struct hed_wire_device that follow, in messages of their own */
    uint64_t capabilities; /* those that both sides have */
    uint8_t session[16];   /* what further channels name in their preface */
    uint8_t secret[16];    /* what they show in HED_MSG_ATTACH */
    uint64_t stride;       /* bytes from one device's share to the next; the host's is last */
    uint64_t usable;       /* bytes of each share that the client may use, from its beginning */
    uint32_t map_unit;     /* bytes; memory is mapped in multiples of it */
    uint32_t slots;        /* words in the slot page */
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
    uint8_t session[16];
    uint8_t
        secret[16]; /* that of the welcome; after a return, the key by which the client returned */
    uint32_t purpose; /* enum hed_channel_purpose */
    uint32_t reserved;
    uint8_t key[16]; /* of HED_CHANNEL_RETURN: from struct hed_park_answer. Since 2.1 */
};

enum hed_channel_purpose {
    HED_CHANNEL_CALLS,
    HED_CHANNEL_CALLBACKS,
    /* Since 2.1: the first channel of a client that returns to its parked worker. It is answered:
     * struct hed_answer. Over shm, the descriptor of the slots follows, as after HED_MSG_ARENA.
     * Tickets begin at 1 again. Later it carries calls. Channels of before are closed. */
    HED_CHANNEL_RETURN,
    /* Since 2.2: not a channel. After HED_PREFACE_ORDERS, struct hed_attach is the first that the
     * client writes. */
    HED_CHANNEL_ORDERS,
};

/* HED_MSG_PARK with HED_CAN_PARK: the client closes all its channels after the answer, and the
 * worker keeps everything else. CUDA_ERROR_NOT_READY if something is under way: a message on
 * another channel, a function of the program, a mark, a deferred copy, a graph that is being
 * described. Then the worker is not parked. After success, no message is allowed on any channel. */
struct hed_park_answer {
    struct hed_answer head;
    uint8_t key[16]; /* good for one return */
};

/* ---- orders ---------------------------------------------------------------------------------- */

/* With HED_CAN_ORDERS a client may open one more connection, with HED_PREFACE_ORDERS. It carries
 * these two structs as they are, over all transports: it has no rings, tickets or answers.
 *
 *   operator ──HED_PREFACE_ORDER, order──> listener ──the connection──> worker ──order──> client
 *            <───────────────────────── reports ─────────────────────────────── <─ reports ──
 *
 * The client decides whether it obeys. It reports at least once per order; the last report says
 * DONE or FAILED. Orders are carried out one after the other. The connection may end, and be opened
 * again, without an effect on the session. */
enum hed_order_action {
    HED_ORDER_MOVE = 1, /* go to the server at `address`, with everything that the program has */
};

struct hed_order {
    struct hed_msg head;  /* number: of the order, which its reports repeat; the worker sets it */
    uint32_t action;      /* enum hed_order_action; the client refuses what it does not know */
    uint32_t deadline_ms; /* for the program's work to end; 0: the client's choice */
    uint32_t budget_ms;   /* how long the last copy may take; 0: the client's choice */
    uint32_t reserved;    /* 0 */
    char address[256];
};

enum hed_order_state {
    HED_ORDER_GOING = 1, /* it is being carried out */
    HED_ORDER_DONE,
    HED_ORDER_FAILED, /* or refused: the program goes on as before, and `why` says why */
};

struct hed_order_report {
    struct hed_msg head;  /* number: of the order */
    uint32_t state;       /* enum hed_order_state */
    uint32_t rounds;      /* of copying; the last one while the program stood still */
    uint64_t written;     /* bytes that were copied */
    uint64_t last_round;  /* of these, in the last round */
    uint64_t stall_ns;    /* how long the program stood still */
    uint64_t total_ns;    /* of all of it */
    uint64_t reserved[1]; /* 0 */
    char program[64];
    char address[256]; /* of the server that the program is at now */
    char why[256];     /* for people */
};

/* The worker offers a base. The client accepts it, or refuses it and is offered another.
 *
 * The arena is a number of shares for devices, one after the other, and then the host's. Any memory
 * of any device may be mapped in any share of devices. Before HED_CAN_BASE there are as many as the
 * server has devices; with it, as many as the client says, so that a client finds the same
 * addresses at servers with other numbers of devices.
 *
 * With HED_CAN_CLIENT_HEAP the client passes the descriptor of its heap over the connection before
 * it accepts a base: a memfd with F_SEAL_SHRINK, which may be empty. It contains the host's share
 * from the beginning. The client makes it larger before it maps memory there. */
struct hed_arena_offer {
    struct hed_msg head;
    uint64_t base;    /* 0 asks for an offer; else the client has reserved this base */
    uint64_t refused; /* a base that the client cannot use; 0 if none yet */
    /* With HED_CAN_BASE, if `base` is 0: */
    uint64_t want;    /* offer this base or none; 0: any */
    uint32_t devices; /* shares for devices; at most as many as the server has devices */
    uint32_t reserved;
};
struct hed_arena_answer {
    struct hed_answer head;
    uint64_t base; /* the devices' shares in order, then the host's; 0 if none is left */
};

/* ---- memory ---------------------------------------------------------------------------------- */

struct hed_lease {
    struct hed_msg head;
    int32_t device; /* ordinal */
    uint32_t reserved;
    uint64_t want;  /* bytes in addition to what the client has; the answer says what it got */
    uint64_t least; /* fewer bytes than that are of no use */
    uint64_t give;  /* bytes that the client gives back */
};
struct hed_lease_answer {
    struct hed_answer head;
    uint64_t granted; /* bytes in addition; 0 with OUT_OF_MEMORY. If nothing was wanted: all bytes
                       * that the client could have, including those that it has */
};

enum hed_map_kind {
    HED_MAP_DEVICE,   /* new memory at addresses; charged to the lease */
    HED_MAP_HOST,     /* pinned, shared over shm; MAP is answered */
    HED_MAP_PHYSICAL, /* cuMemCreate of the program, at no address; charged to the lease */
    HED_MAP_VIEW,     /* a mapping of physical memory (cuMemMap), to which nothing has access yet */
    HED_MAP_ACCESS,   /* MAP only: sets the access to a view (cuMemSetAccess) */
};
struct hed_map { /* HED_MSG_MAP, HED_MSG_UNMAP */
    struct hed_msg head;
    uint32_t kind;  /* enum hed_map_kind */
    int32_t device; /* ordinal; -1 for physical memory of the host */
    uint64_t at, size;
    uint64_t physical; /* the client's number, of HED_MAP_PHYSICAL and HED_MAP_VIEW */
    uint32_t access;   /* CUmemAccess_flags, of HED_MAP_ACCESS */
    uint32_t reserved;
};

/* ---- between clients ------------------------------------------------------------------------- */

/* HED_MSG_SHARE with HED_CAN_SHARE: other clients of this server that belong to the same user, or
 * have the same certificate or the token, can use memory and events of this one (CUDA IPC). They
 * open them by a key, 16 random bytes that the server makes. The client passes the key on however
 * it likes.
 *
 * What was offered can be opened until it is unmapped, released or destroyed, or until its client
 * ends. Those who have opened memory keep it. An UNMAP of memory that was offered may ask for an
 * answer: 64 bits follow it, how many bytes of the lease others have now.
 *
 * All are answered by struct hed_share_answer but HED_SHARE_EVENT_MADE and _GONE, which are not
 * answered. The result of an _OPEN is INVALID_CONTEXT for what is the client's own, and
 * INVALID_HANDLE for a key that opens nothing. */
#define HED_SHARE_KEY 16   /* bytes */
#define HED_SHARE_OWNER 32 /* bytes that the offering client adds, for those who open it */
#define HED_SHARE_EVENTS_MAX 4096u
enum hed_share_op {
    HED_SHARE_OFFER = 1,  /* a block (`at`, `size`) or, if `name` is not 0, physical memory: key */
    HED_SHARE_OPEN,       /* the memory of a key becomes the client's physical memory `name` */
    HED_SHARE_EVENT_MADE, /* `name` is an event that can be offered */
    HED_SHARE_EVENT_OFFER,
    HED_SHARE_EVENT_OPEN, /* the event of a key becomes `name` */
    HED_SHARE_EVENT_GONE,
    HED_SHARE_EVENT_RECORD, /* on the stream in the head, like the next */
    HED_SHARE_EVENT_WAIT,   /* for the last record of any client */
    HED_SHARE_EVENT_QUERY,  /* SUCCESS, NOT_READY */
    HED_SHARE_EVENT_SYNC,   /* answered when the last record has been reached */
};
struct hed_share_body {
    struct hed_msg head;
    uint32_t op; /* enum hed_share_op */
    uint32_t reserved;
    uint64_t at, size;
    uint64_t name; /* of physical memory, or of an event: the client's */
    uint8_t key[HED_SHARE_KEY];
    uint8_t owner[HED_SHARE_OWNER];
};
struct hed_share_answer {
    struct hed_answer head;
    uint64_t size;  /* of HED_SHARE_OPEN: bytes */
    int32_t device; /* of HED_SHARE_OPEN: ordinal; -1 for the host */
    uint32_t reserved;
    uint8_t key[HED_SHARE_KEY];     /* of an _OFFER */
    uint8_t owner[HED_SHARE_OWNER]; /* of HED_SHARE_OPEN */
};

/* ---- work ------------------------------------------------------------------------------------ */

struct hed_launch_body {
    struct hed_msg head;
    uint64_t function; /* CUfunction or CUkernel, by the client's name */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
    uint32_t attributes; /* CUlaunchAttribute that follow, each 72 bytes; without events */
    uint32_t params;     /* bytes of parameters after them, in the kernel's layout */
    uint32_t cooperative;
};

/* A copy, or a piece of one, between memory of the client and memory or an array of the device. The
 * client's side is `from` of HED_MSG_COPY_IN, and `to` of the others. Up to HED_COPY_INSIDE bytes
 * may follow this struct, or the answer to HED_MSG_COPY_OUT, instead of being bulk. */
#define HED_COPY_INSIDE 4096u
struct hed_copy_body {
    struct hed_msg head;
    struct hed_copy copy; /* bulk is the bytes of its box, row by row */
};

/* The bytes of a HED_MSG_COPY_DEFERRED; without bulk, the copy has failed and they will not come.
 * Or, without a pitch, bytes of mirrored memory (HED_MSG_SYNC_HOST). */
struct hed_data {
    struct hed_msg head;     /* bulk: the bytes of the box; number: which piece, from 1 */
    struct hed_copy_side to; /* memory of the client */
    struct hed_box box;
};

/* HED_MSG_ARRAY: the names of the levels of a mipmap follow. */
enum hed_array_op { HED_ARRAY_CREATE = 1 /* answered */, HED_ARRAY_DESTROY };
struct hed_array_body {
    struct hed_msg head;
    uint64_t name;   /* of the array or mipmapped array */
    uint32_t op;     /* enum hed_array_op; the rest is for HED_ARRAY_CREATE */
    uint32_t levels; /* of a mipmap: number of names that follow; 0 for an array */
    uint64_t width, height, depth;
    uint32_t format, channels, flags, reserved;
};

/* HED_MSG_GRAPH: the client describes graphs node by node, on each channel its own. A graph is
 * begun, and nodes are added to it, each after others by position. A graph that is begun inside
 * another ends as a node of that. The outermost ends as an executable graph with a name. If the
 * name exists already, that executable graph is updated or, if that is not possible, replaced.
 * Positions (32 bits each) follow the body and, at the next multiple of 8, the node's own struct.
 *
 * A conditional handle is the driver's, since kernels set it, and belongs to a graph of the driver.
 * So a graph with such handles has a name, under which the worker keeps it: handles are created for
 * the name, and the graph is begun under it. After a conditional node its branches are begun, by
 * number, and ended. */
enum hed_graph_op {
    HED_GRAPH_BEGIN = 1,
    HED_GRAPH_NODE,
    HED_GRAPH_CHILD,
    HED_GRAPH_MAKE, /* may be answered */
    HED_GRAPH_DROP, /* the executable graph is destroyed */
    /* Since 1.1. */
    HED_GRAPH_CONDITION, /* answered: struct hed_graph_condition_answer */
    HED_GRAPH_BRANCH,    /* of the conditional node that was described last */
    HED_GRAPH_END,       /* of a branch */
    HED_GRAPH_FORGET     /* the graph that was kept under a name is destroyed */
};
struct hed_graph_body {
    struct hed_msg head; /* context: that of the node */
    uint32_t op;         /* enum hed_graph_op */
    uint32_t type;       /* of HED_GRAPH_NODE: CUgraphNodeType */
    uint64_t exec;       /* of HED_GRAPH_MAKE and _DROP: the name of the executable graph; of
                          * _BEGIN, _CONDITION and _FORGET: the name of a kept graph, or 0 */
    uint64_t flags;      /* of HED_GRAPH_MAKE: of cuGraphInstantiate; of _BRANCH: its number */
    uint32_t after;      /* number of positions that follow */
    uint32_t size;       /* bytes of the node's own struct, after them */
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

struct hed_graph_value { /* as many as fit: a batch of operations on memory */
    uint32_t operation;  /* CUstreamBatchMemOpType */
    uint32_t flags;
    uint64_t at, value;
};

struct hed_graph_condition { /* follows a body of HED_GRAPH_CONDITION */
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
    uint32_t always; /* run it after a failure, too (cuStreamAddCallback) */
    uint32_t holds;  /* the stream waits until the client says that it has run */
};

struct hed_run {         /* worker to client, on the callback channel; answered with the same */
    struct hed_msg head; /* stream and number as in HED_MSG_HOST */
    uint64_t id;
    int32_t status; /* CUresult of the stream */
    uint32_t reserved;
};

_Static_assert(sizeof(struct hed_msg) == 64, "the head is one cache line");
_Static_assert(sizeof(struct hed_preface) == 32, "the preface has no padding");
_Static_assert(sizeof(struct hed_share_body) == 144, "a share has no padding");
_Static_assert(sizeof(struct hed_share_answer) == 144, "its answer has none either");
_Static_assert(sizeof(struct hed_order) == 336, "an order has no padding");
_Static_assert(sizeof(struct hed_order_report) == 688, "a report has no padding");
