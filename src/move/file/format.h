/* The snapshot file, byte for byte (docs/snapshot-format.md). Little-endian; all fields are
 * naturally aligned, so that the structs below are the file's own.
 *
 *   0        superblock                         4 KiB
 *   4096     payloads: stored chunks, each at a multiple of 4 KiB
 *   ...      tables: homes | blobs | extents | chunks | names, without gaps
 *   ...      zeros up to a multiple of 4 KiB
 *   end-4096 footer                             4 KiB
 *
 * A snapshot is a set of extents (memory, files, notes). An extent is cut into chunks of one size;
 * the last may be shorter. A chunk is nothing but zeros, or a blob: bytes that are stored once, in
 * this file or in that of an older snapshot, which is then called a home of this one.
 *
 * A file that a second writer has continued has further payloads, tables and a footer after the
 * first footer. Every footer describes the whole snapshot; only the last one counts.
 *
 * This header is the layout only. The writer is writer.h, the reader reader.h.
 */
#pragma once

#include <stdint.h>

#define HED_SNAP_MAGIC "HDLSNAP1"
#define HED_SNAP_FOOTER_MAGIC "HDLSNAPF"
#define HED_SNAP_END_MAGIC "1PANSLDH"
#define HED_SNAP_MAJOR 1 /* a reader refuses any other */
#define HED_SNAP_MINOR 0 /* a reader accepts any */

#define HED_SNAP_BLOCK 4096u /* bytes: of superblock and footer, and what payloads are aligned to */
#define HED_SNAP_CHUNK (2u << 20)       /* bytes: the usual chunk */
#define HED_SNAP_CHUNK_LEAST 4096u      /* bytes; a power of two, as is every size between */
#define HED_SNAP_CHUNK_MOST (64u << 20) /* bytes */

/* Ceilings, for writers and readers. */
#define HED_SNAP_HOMES_MAX 128u          /* older files that hold bytes of one snapshot */
#define HED_SNAP_EXTENTS_MAX (1u << 20)  /* extents */
#define HED_SNAP_CHUNKS_MAX (1u << 24)   /* chunks; also blobs of one file */
#define HED_SNAP_EXTENT_MAX (1ull << 48) /* bytes of one extent */
#define HED_SNAP_NAME_MAX 1024u          /* bytes of one name */
#define HED_SNAP_NAMES_MAX (64u << 20)   /* bytes of all names */

#define HED_SNAP_UUID 16
#define HED_SNAP_DIGEST 32

/* What a reader must know to use the file; it refuses a bit that it does not know. */
enum hed_snap_need {
    HED_SNAP_NEED_ZSTD = 1,
    HED_SNAP_NEEDS_KNOWN = 1,
};

enum hed_snap_footer_flag {
    HED_SNAP_PARTIAL = 1, /* another writer continues the file: not a snapshot yet */
};

/* How a blob is stored. */
enum hed_snap_packing {
    HED_SNAP_RAW = 0,
    HED_SNAP_ZSTD = 1,
};

/* What an extent is. Numbers are never reused. Unknown kinds are refused. */
enum hed_snap_kind {
    HED_SNAP_DEVICE = 1,   /* device memory; key: its address */
    HED_SNAP_PHYSICAL = 2, /* physical device memory; key: its number */
    HED_SNAP_ARRAY = 3,    /* an array, its rows one after the other; key: its handle */
    HED_SNAP_VARIABLE = 4, /* a variable of a module; key: the module's, or 0; name: its own */
    HED_SNAP_FILE = 5,     /* a file of the process image; name: a plain file name */
    HED_SNAP_OBJECTS = 6,  /* notes about the session for people, as text; name: of the notes */
    HED_SNAP_HOST = 7,     /* memory of the process that its image does not have; key: address */
};
#define HED_SNAP_KIND_LAST 7

struct hed_snap_super {
    char magic[8];
    uint16_t major, minor;
    uint32_t bytes; /* of this block: HED_SNAP_BLOCK */
    uint8_t uuid[HED_SNAP_UUID];
    uint8_t parent[HED_SNAP_UUID];  /* the snapshot taken before; zeros: none */
    uint8_t session[HED_SNAP_UUID]; /* the same for all snapshots of one program */
    uint64_t epoch;                 /* grows from snapshot to snapshot in a folder */
    uint64_t created_ns;            /* since 1970, for people */
    uint64_t heap_base, heap_size;  /* the range of device addresses; 0: none */
    uint32_t chunk_size;
    uint32_t pid;      /* of the program, when it was saved */
    char backend[32];  /* these six end in NUL */
    char arch[32];     /* of the program's machine: x86_64, aarch64 */
    char device[96];   /* name of the first device */
    char address[256]; /* of the server */
    char program[256];
    char label[128];
    uint8_t rest[3188]; /* zeros in version 1.0 */
    uint32_t crc;       /* CRC-32C of all before */
};

/* A file that holds blobs of this snapshot. */
struct hed_snap_home_row {
    uint8_t uuid[HED_SNAP_UUID];
    uint64_t epoch; /* for messages */
    uint64_t zero;
};

/* Stored bytes. Rows are in the order of their offsets. */
struct hed_snap_blob_row {
    uint64_t offset; /* in the file; a multiple of HED_SNAP_BLOCK */
    uint32_t stored; /* bytes in the file */
    uint32_t size;   /* bytes of the chunk */
    uint64_t hash[2];
    uint32_t crc;     /* CRC-32C of the stored bytes */
    uint16_t packing; /* enum hed_snap_packing */
    uint16_t zero;
};

struct hed_snap_extent_row {
    uint32_t kind;
    uint32_t device; /* number of the device; 0 where that means nothing */
    uint64_t key;
    uint64_t context; /* handle; 0 where that means nothing */
    uint64_t size;    /* bytes */
    uint64_t first;   /* its first row in the table of chunks */
    uint32_t name;    /* where its name begins in the names; names lie in the order of extents */
    uint32_t name_bytes;
    uint32_t mode; /* of a file: permission bits */
    uint32_t zero;
    uint64_t zero2;
};

#define HED_SNAP_HERE 0u          /* home of a chunk: this file */
#define HED_SNAP_ZEROS UINT32_MAX /* home of a chunk: none, it is all zeros */

struct hed_snap_chunk_row {
    uint64_t hash[2]; /* of the content; the same as the blob's */
    uint32_t home;    /* HED_SNAP_HERE, HED_SNAP_ZEROS, or the home's row + 1 */
    uint32_t blob;    /* the blob's row there; 0 for zeros */
};

struct hed_snap_footer {
    char magic[8];
    uint8_t uuid[HED_SNAP_UUID]; /* as in the superblock */
    uint32_t flags;              /* enum hed_snap_footer_flag */
    uint32_t needs;              /* enum hed_snap_need */
    uint64_t at;                 /* where this footer is */
    uint64_t tables;             /* where the tables are */
    uint32_t homes;              /* rows */
    uint32_t blobs;
    uint32_t extents;
    uint32_t chunks;
    uint64_t names;                  /* bytes */
    uint64_t content;                /* bytes of all extents */
    uint64_t stored;                 /* bytes of all blobs in this file */
    uint8_t rest[3960];              /* zeros in version 1.0 */
    uint8_t digest[HED_SNAP_DIGEST]; /* BLAKE2b of superblock, tables, filling, footer before */
    uint32_t zero;
    uint32_t crc; /* CRC-32C of all before */
    char end[8];
};

_Static_assert(sizeof(struct hed_snap_super) == HED_SNAP_BLOCK, "superblock");
_Static_assert(sizeof(struct hed_snap_footer) == HED_SNAP_BLOCK, "footer");
_Static_assert(sizeof(struct hed_snap_home_row) == 32, "home");
_Static_assert(sizeof(struct hed_snap_blob_row) == 40, "blob");
_Static_assert(sizeof(struct hed_snap_extent_row) == 64, "extent");
_Static_assert(sizeof(struct hed_snap_chunk_row) == 24, "chunk");
