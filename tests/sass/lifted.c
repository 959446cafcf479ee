/* PTX through machine code and back. See lifted.h. */
#include "sass/lifted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"

#define FILE_MAX ((size_t)1 << 20)

bool
lifted_init(struct lifted *t, const char *ptxas, const char *arch)
{
    const char *scratch = getenv("HED_SCRATCH");

    t->ptxas = ptxas;
    t->arch = arch;
    (void)snprintf(t->ptx, sizeof(t->ptx), "%s/lifted.ptx", scratch ? scratch : ".");
    (void)snprintf(t->cubin, sizeof(t->cubin), "%s/lifted.cubin", scratch ? scratch : ".");
    return access(ptxas, X_OK) == 0;
}

static bool
write_text(FILE *f, const char *arch, const char *text)
{
    const char *target = strstr(text, ".target ");
    const size_t n = target ? (size_t)(target - text) : 0;

    return fwrite(text, 1, n, f) == n && (!target || fprintf(f, ".target %s", arch) >= 0) &&
           fputs(target ? target + strcspn(target, "\n,") : text, f) >= 0;
}

bool
lifted_assemble(const struct lifted *t, const char *text, struct hed_buf *said)
{
    char command[2048], line[1024];
    FILE *f = fopen(t->ptx, "w");

    if (!f || !write_text(f, t->arch, text) || fclose(f) != 0) {
        perror(t->ptx);
        exit(1);
    }
    (void)snprintf(command, sizeof(command), "'%s' -fmad=false -arch=%s '%s' -o '%s' 2>&1",
                   t->ptxas, t->arch, t->ptx, t->cubin);
    f = popen(command, "r");
    if (!f) {
        perror("popen");
        exit(1);
    }
    while (fgets(line, sizeof(line), f))
        hed_buf_addf(said, "%s", line);
    return pclose(f) == 0;
}

static struct hed_bytes
read_cubin(const char *path)
{
    static uint8_t bytes[FILE_MAX];
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(bytes, 1, sizeof(bytes), f) : 0;

    if (f)
        fclose(f);
    return (struct hed_bytes){bytes, n};
}

int
lifted_text(const struct lifted *t, enum hed_sass_for use, struct hed_buf *ptx, struct hed_why *why)
{
    struct hed_sass_program *program;
    struct hed_arena arena;

    hed_arena_init(&arena, FILE_MAX * 16);

    int err = hed_sass_open(read_cubin(t->cubin), &arena, &program, why);

    if (err == 0)
        err = program->cubin.kernel_count == 1 ? hed_sass_lift(program, 0, use, ptx, why)
                                               : HED_EFORMAT;
    hed_arena_fini(&arena);
    return err;
}
