/* The order of exit handlers.
 *
 * exit() calls the handler first that was registered last. A C++ library registers one whenever a
 * variable with a destructor inside a function comes to life: long after it was loaded, and after
 * anybody else could register a handler that must run before it.
 *
 * The library calls __cxa_atexit through a slot of its own that the dynamic linker has filled. Here
 * the slot gets another function:
 *
 *   library ─> slot ─> register_after ─> __cxa_atexit(call_in_order, {handler, its argument})
 *   exit()  ─> call_in_order ─> before() ─> handler
 *
 * Both are one registration, so there is no moment at which the handler would run alone.
 */
#include "base/exit_order.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__aarch64__)
#define IS_SLOT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#define IS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#endif

int __cxa_atexit(void (*handler)(void *), void *arg, void *library);

static void (*call_before)(void); /* set before any slot is */

struct ordered {
    void (*handler)(void *);
    void *arg;
};

static void
call_in_order(void *arg)
{
    const struct ordered o = *(struct ordered *)arg;

    free(arg);
    call_before();
    o.handler(o.arg);
}

static int
register_after(void (*handler)(void *), void *arg, void *library)
{
    struct ordered *o = malloc(sizeof *o);

    if (!o)
        return -1;
    *o = (struct ordered){handler, arg};

    const int err = __cxa_atexit(call_in_order, o, library);

    if (err)
        free(o);
    return err;
}

/* ---- the library's table --------------------------------------------------------------------- */

struct library_tables {
    const Elf64_Sym *symbols;
    const char *names;
    const Elf64_Rela *calls, *others;
    size_t calls_size, others_size;
    size_t relative; /* that many of the others come first and name no symbol */
};

/* glibc has added the library's address to what the section holds. */
static struct library_tables
read_dynamic_section(const Elf64_Dyn *d)
{
    struct library_tables t = {0};

    for (; d->d_tag != DT_NULL; d++) {
        const void *at = (const void *)d->d_un.d_ptr;

        switch (d->d_tag) {
        case DT_SYMTAB:
            t.symbols = at;
            break;
        case DT_STRTAB:
            t.names = at;
            break;
        case DT_JMPREL:
            t.calls = at;
            break;
        case DT_PLTRELSZ:
            t.calls_size = d->d_un.d_val;
            break;
        case DT_RELA:
            t.others = at;
            break;
        case DT_RELASZ:
            t.others_size = d->d_un.d_val;
            break;
        case DT_RELACOUNT:
            t.relative = d->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return t;
}

/* Is the slot in memory that the dynamic linker has made read-only? */
static bool
is_read_only(const struct dl_phdr_info *library, uintptr_t slot)
{
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const Elf64_Phdr *p = &library->dlpi_phdr[i];

        if (p->p_type == PT_GNU_RELRO && slot - (library->dlpi_addr + p->p_vaddr) < p->p_memsz)
            return true;
    }
    return false;
}

static bool
set_slot(const struct dl_phdr_info *library, void **slot)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *first = (void *)((uintptr_t)slot & ~(page - 1));
    const bool read_only = is_read_only(library, (uintptr_t)slot);

    if (read_only && mprotect(first, page, PROT_READ | PROT_WRITE) != 0)
        return false;
    /* Release: pairs with whoever calls through the slot, for call_before. */
    __atomic_store_n(slot, (void *)register_after, __ATOMIC_RELEASE);
    return !read_only || mprotect(first, page, PROT_READ) == 0;
}

static bool
set_slots(const struct dl_phdr_info *library, const struct library_tables *t,
          const Elf64_Rela *table, size_t first, size_t size)
{
    bool any = false;

    for (size_t i = first; table && i < size / sizeof *table; i++) {
        const Elf64_Rela *r = &table[i];
        const Elf64_Sym *symbol = &t->symbols[ELF64_R_SYM(r->r_info)];

        if (IS_SLOT(ELF64_R_TYPE(r->r_info)) &&
            strcmp(t->names + symbol->st_name, "__cxa_atexit") == 0)
            any = set_slot(library, (void **)(library->dlpi_addr + r->r_offset)) || any;
    }
    return any;
}

bool
hed_exit_order(const struct dl_phdr_info *library, void (*before)(void))
{
    call_before = before;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const Elf64_Phdr *p = &library->dlpi_phdr[i];

        if (p->p_type != PT_DYNAMIC)
            continue;

        const struct library_tables t =
            read_dynamic_section((const Elf64_Dyn *)(library->dlpi_addr + p->p_vaddr));

        if (!t.symbols || !t.names)
            return false;

        const bool calls = set_slots(library, &t, t.calls, 0, t.calls_size);

        return set_slots(library, &t, t.others, t.relative, t.others_size) || calls;
    }
    return false;
}
