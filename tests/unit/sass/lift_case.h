/* For tests that lift a cubin of their own: what they make it of, and what comes out. */
#pragma once

#include "base/arena.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/text/parse.h"
#include "kernel/sass/lift.h"
#include "unit/sass/cubin_make.h"

#define CASE_TEXT_MAX ((size_t)256 << 20)

static struct make_cubin cubin;
static struct hed_arena arena;
static struct hed_buf code, other; /* of a kernel, and of a function */
static struct hed_buf info;        /* records of the kernel */
static struct hed_buf text;        /* what was lifted */
static struct hed_why why;

static inline int
setup(void **state)
{
    make_cubin_begin(&cubin);
    hed_arena_init(&arena, 256 << 20);
    hed_buf_init(&code, MAKE_CEILING);
    hed_buf_init(&other, MAKE_CEILING);
    hed_buf_init(&info, MAKE_CEILING);
    hed_buf_init(&text, CASE_TEXT_MAX);
    why.text[0] = '\0';
    return 0;
}

static inline int
teardown(void **state)
{
    make_cubin_fini(&cubin);
    hed_arena_fini(&arena);
    hed_buf_fini(&code);
    hed_buf_fini(&other);
    hed_buf_fini(&info);
    hed_buf_fini(&text);
    return 0;
}

/* For a test that tries several cubins. */
static inline void
begin_again(void **state)
{
    (void)teardown(state);
    (void)setup(state);
}

static inline struct hed_sass_program *
open_cubin(void)
{
    struct hed_sass_program *p = NULL;

    if (hed_sass_open(make_cubin_end(&cubin), &arena, &p, &why) != 0)
        fail_msg("%s", why.text);
    return p;
}

/* The first kernel of the cubin. */
static inline int
lift_cubin(void)
{
    return hed_sass_lift(open_cubin(), 0, HED_SASS_FOR_CPU, &text, &why);
}

static inline int
lift_cubin_for_gpu(void)
{
    return hed_sass_lift(open_cubin(), 0, HED_SASS_FOR_GPU, &text, &why);
}

/* One kernel of the code and the records so far. */
static inline int
lift_code(void)
{
    (void)make_kernel(&cubin, "k", &code, &info);
    return lift_cubin();
}

/* The same; `count` functions begin at an instruction, and at every `apart`th behind it. */
static inline int
lift_code_with_functions(uint32_t first, uint32_t count, uint32_t apart)
{
    const uint32_t section = make_kernel(&cubin, "k", &code, &info);

    for (uint32_t i = 0; i < count; i++)
        (void)make_symbol(&cubin, "f",
                          (Elf64_Sym){.st_info = STT_FUNC,
                                      .st_shndx = (uint16_t)section,
                                      .st_value = (first + i * apart) * 16});
    return lift_cubin();
}

/* What is lifted must be PTX for our parser. */
static inline void
text_can_be_parsed(void)
{
    struct hed_ptx_module m;

    hed_ptx_module_init(&m, HED_PTX_CEILING);
    assert_int_equal(hed_ptx_parse(&m, (const char *)text.data, text.size), 0);
    hed_ptx_module_fini(&m);
}

static inline unsigned
count_in_text(const char *word)
{
    const char *at = hed_buf_cstr(&text);
    unsigned n = 0;

    while ((at = strstr(at, word))) {
        at += strlen(word);
        n++;
    }
    return n;
}
