/* Questions to a running server: what `heddle serve --status`, `--list` and `--evict` ask, and
 * which program a worker serves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hed_buf;
struct hed_conn;
struct hed_preface;
struct hed_why;

#define HED_ASK_ANSWER_MAX (16u << 20) /* bytes of an answer */
#define HED_ASK_CLIENTS \
    ",\"clients\":[" /* in the status: behind it are workers that have clients */

/* Asks the server that listens at an address (NULL: at the usual one), and adds its answer to
 * `text`. question->magic is filled in here. HED_EINVAL: there is no such address, or no question
 * can be asked over it. */
int hed_ask(const char *listen, const struct hed_preface *question, struct hed_buf *text,
            struct hed_why *why);

/* Only connects and asks; for answers that are not a text. */
int hed_ask_open(const char *listen, const struct hed_preface *question, struct hed_conn **out,
                 struct hed_why *why);

/* The server's process, as the kernel knows it. HED_EACCESS if the server says another. */
int hed_ask_server(const char *listen, pid_t *out, struct hed_why *why);

/* Does the server have a worker for that process of this machine? A worker that has ended counts
 * until the server has noticed its end, which is when its memory is free. */
int hed_ask_serves(const char *listen, pid_t client, bool *out);

/* What GPU the server uses (its option --gpu). */
int hed_ask_gpu(const char *listen, char *out, size_t size);

/* The process that a worker serves. HED_ENOTFOUND: the server has no such worker. HED_ENOTSUP: its
 * client is on another machine. */
int hed_ask_client(const char *listen, uint64_t worker, pid_t *out, struct hed_why *why);
