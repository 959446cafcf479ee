/* The options that give a QEMU guest its two devices, as the server and `heddle vm` print them. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "remote/wire/window.h"

/* Paths come from XDG_RUNTIME_DIR. A shell would split or expand some of them, and $(...) cannot
 * quote. */
static bool
is_shell_word(const char *path)
{
    return path[strcspn(path, " \t\n\\\"'*?[]`$")] == '\0';
}

/* In QEMU's options, commas separate values, and two commas are one. */
static void
add_qemu_path(struct hed_buf *b, const char *path)
{
    for (; *path; path++) {
        hed_buf_add(b, path, 1);
        if (*path == ',')
            hed_buf_add(b, path, 1);
    }
}

void
hed_vm_qemu_size(struct hed_buf *b, uint64_t bytes)
{
    if (bytes == 0)
        hed_buf_addf(b, "0");
    else if (bytes % (UINT64_C(1) << 30) == 0)
        hed_buf_addf(b, "%" PRIu64 "G", bytes >> 30);
    else
        hed_buf_addf(b, "%" PRIu64 "M", bytes >> 20);
}

int
hed_vm_qemu_options(struct hed_buf *b, const char *socket, const char *window, uint64_t size,
                    uint64_t ram, const char *end)
{
    if (!is_shell_word(socket) || !is_shell_word(window))
        return HED_EINVAL;
    hed_buf_addf(b, "-object memory-backend-memfd,id=heddle-ram,size=");
    hed_vm_qemu_size(b, ram);
    hed_buf_addf(b, ",share=on%s-machine memory-backend=heddle-ram%s", end, end);
    hed_buf_addf(b, "-chardev socket,id=heddle-vsock,path=");
    add_qemu_path(b, socket);
    hed_buf_addf(b, "%s-device vhost-user-vsock-pci,chardev=heddle-vsock%s", end, end);
    if (size) {
        hed_buf_addf(b, "-object memory-backend-file,id=heddle-window,mem-path=");
        add_qemu_path(b, window);
        hed_buf_addf(b, ",size=");
        hed_vm_qemu_size(b, size);
        hed_buf_addf(b, ",share=on%s-device ivshmem-plain,memdev=heddle-window%s", end, end);
    }
    return b->err;
}
