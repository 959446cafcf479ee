/* Compiles a kernel to an object file: sets LLVM up and runs the passes of passes.c, some of which
 * are here.
 *
 * Every compilation has its own LLVM context, so threads do not disturb each other. The object can
 * be loaded at any address: it is position independent, its undefined symbols are hidden (so calls
 * are near), and it has no tables for unwinding.
 */
#include "kernel/ptx/lower/compile.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernel/ptx/lower/lower.h"
#include "kernel/ptx/lower/passes.h"
#include "kernel/ptx/lower/ternary.h"
#include "kernel/ptx/run/layout.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_target_ready; /* written under once, constant afterwards */

/* Where to continue when LLVM gives up ("cannot select"), which would otherwise end the process.
 * Set only while this thread compiles. LLVM's memory at that moment leaks, and the kernel is
 * refused. */
static _Thread_local sigjmp_buf *gives_up;
static _Thread_local char gave_up[256];
static _Atomic bool is_damaged; /* it has happened in this process */

static void
on_fatal(const char *reason)
{
    if (!gives_up)
        return;
    snprintf(gave_up, sizeof(gave_up), "%s", reason);
    atomic_store_explicit(&is_damaged, true, memory_order_relaxed); /* read by the same thread */
    siglongjmp(*gives_up, 1);
}

bool
hed_ptx_compiler_is_damaged(void)
{
    return atomic_load_explicit(&is_damaged, memory_order_relaxed);
}

/* The order of instructions is ours (pass/tiles.c), and the processor's: LLVM's scheduler spreads
 * sums over the registers again, and takes time. Moving values from common to mask registers is
 * quadratic in the length of a block, 4/5 of the time of one of 2000 fma, and finds nothing: masks
 * begin as vectors here. Measured on x86-64 only. */
static void
leave_passes_out(void)
{
#if defined(__x86_64__)
    static const char *const words[] = {"heddle", "-enable-misched=false",
                                        "-disable-x86-domain-reassignment"};

    LLVMParseCommandLineOptions((int)(sizeof words / sizeof *words), words, NULL);
#endif
}

static void
init_target(void)
{
    LLVMInstallFatalErrorHandler(on_fatal);
    leave_passes_out();
    is_target_ready = LLVMInitializeNativeTarget() == 0 && LLVMInitializeNativeAsmPrinter() == 0;
}

static int
llvm_failure(struct hed_why *why, const char *what, char *message)
{
    hed_why_set(why, "%s: %s", what, message ? message : "no reason given");
    LLVMDisposeMessage(message);
    return HED_ENOTSUP;
}

/* LLVM reports here what a back end cannot do; without a handler it would end the process. */
static void
keep_diagnostic(LLVMDiagnosticInfoRef info, void *arg)
{
    struct hed_lower *l = arg;

    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || l->err)
        return;
    l->err = llvm_failure(l->why, "LLVM", LLVMGetDiagInfoDescription(info));
}

/* ---- the target ------------------------------------------------------------------------------ */

static int
make_machine(const struct hed_ptx_options *o, LLVMTargetMachineRef *machine, struct hed_why *why)
{
    char *triple = LLVMGetDefaultTargetTriple();
    char *message = NULL;
    LLVMTargetRef target;
    int err = 0;

    if (LLVMGetTargetFromTriple(triple, &target, &message)) {
        err = llvm_failure(why, "target", message);
    } else {
        *machine = LLVMCreateTargetMachine(target, triple, o->cpu && o->cpu[0] ? o->cpu : "generic",
                                           o->features ? o->features : "",
                                           o->level >= 2   ? LLVMCodeGenLevelDefault
                                           : o->level == 1 ? LLVMCodeGenLevelLess
                                                           : LLVMCodeGenLevelNone,
                                           LLVMRelocPIC, LLVMCodeModelSmall);
        if (!*machine) {
            hed_why_set(why, "LLVM cannot make code for %s", triple);
            err = HED_ENOTSUP;
        }
    }
    LLVMDisposeMessage(triple);
    return err;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* LLVM 18 and later end the process if one round of it leaves something to combine. */
#if LLVM_VERSION_MAJOR >= 18
#define COMBINE "instcombine<no-verify-fixpoint>"
#else
#define COMBINE "instcombine"
#endif

/* Kernels were optimised by the compiler that made the PTX. What is left is what we made: variables
 * in memory, masks that are known, the same computed twice. Known values come first, because they
 * leave out a third of the code. default<O2> finds no more and takes 2.5 times as long: in it the
 * others see that third too, and it unrolls loops. */
static const char lean[] =
    "always-inline,globalopt,cgscc(function-attrs),function("
    "sroa,sccp,simplifycfg,early-cse<memssa>," COMBINE ",simplifycfg,"
    "loop-mssa(loop-instsimplify,loop-rotate,licm),simplifycfg," COMBINE ","
    "loop(indvars),gvn,sccp,bdce," COMBINE ",jump-threading,correlated-propagation,adce,dse,"
    "loop-mssa(licm),simplifycfg," COMBINE "),globaldce";

static int
optimise_module(struct hed_lower *l)
{
    static const char *const passes[] = {"function(sroa)", "default<O1>", lean, "default<O3>"};
    const int level = l->options->level < 0 ? 0 : l->options->level > 3 ? 3 : l->options->level;
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef err;

    LLVMPassBuilderOptionsSetLoopVectorization(options, level > 2);
    LLVMPassBuilderOptionsSetSLPVectorization(options, level > 2);
    err = LLVMRunPasses(l->module, passes[level], l->machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (err) {
        char *message = LLVMGetErrorMessage(err);

        hed_why_set(l->why, "LLVM's passes: %s", message);
        LLVMDisposeErrorMessage(message);
        return HED_ENOTSUP;
    }
    return l->err;
}

/* Finds our own mistakes, on which LLVM would crash later. */
int
hed_pass_verify(struct hed_lower *l)
{
    char *message = NULL;
    int err = 0;

    if (LLVMVerifyModule(l->module, LLVMReturnStatusAction, &message)) {
        hed_why_set(l->why, "heddle made invalid code, which is a bug: %s", message);
        err = HED_ESTATE;
    }
    LLVMDisposeMessage(message);
    return err;
}

static void
dump_module(struct hed_lower *l, const char *when)
{
    char path[512];
    char *message = NULL;

    if (!l->options->dump)
        return;
    snprintf(path, sizeof(path), "%s/%.200s.%u.%s.ll", l->options->dump, l->kernel->name, l->lanes,
             when);
    if (LLVMPrintModuleToFile(l->module, path, &message))
        LLVMDisposeMessage(message);
}

int
hed_pass_code(struct hed_lower *l)
{
    hed_lower_unit(l);
    dump_module(l, "made");
    hed_pass_did(l, "%u functions", l->unit->nfuncs);
    return l->err;
}

int
hed_pass_optimise(struct hed_lower *l)
{
    const int err = optimise_module(l);

    dump_module(l, "optimised");
    return err;
}

int
hed_pass_object(struct hed_lower *l)
{
    LLVMMemoryBufferRef memory = NULL;
    char *message = NULL;

    if (LLVMTargetMachineEmitToMemoryBuffer(l->machine, l->module, LLVMObjectFile, &message,
                                            &memory))
        return llvm_failure(l->why, "LLVM's code generator", message);
    hed_buf_add(l->object, LLVMGetBufferStart(memory), LLVMGetBufferSize(memory));
    hed_pass_did(l, "%zu bytes", LLVMGetBufferSize(memory));
    LLVMDisposeMemoryBuffer(memory);
    return l->err ? l->err : l->object->err;
}

/* ---- a compilation --------------------------------------------------------------------------- */

static void
make_types(struct hed_lower *l)
{
    l->i1 = LLVMInt1TypeInContext(l->context);
    l->i8 = LLVMInt8TypeInContext(l->context);
    l->i16 = LLVMInt16TypeInContext(l->context);
    l->i32 = LLVMInt32TypeInContext(l->context);
    l->i64 = LLVMInt64TypeInContext(l->context);
    l->i128 = LLVMInt128TypeInContext(l->context);
    l->f16 = LLVMHalfTypeInContext(l->context);
    l->f32 = LLVMFloatTypeInContext(l->context);
    l->f64 = LLVMDoubleTypeInContext(l->context);
    l->ptr = LLVMPointerTypeInContext(l->context, 0);
    l->nothing = LLVMVoidTypeInContext(l->context);
}

static int
compile_module(struct hed_lower *l)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(l->machine);
    char *triple = LLVMGetTargetMachineTriple(l->machine);

    LLVMSetModuleDataLayout(l->module, layout);
    LLVMSetTarget(l->module, triple);
    LLVMDisposeTargetData(layout);
    LLVMDisposeMessage(triple);
    return hed_lower_run_passes(l, hed_passes_of_module);
}

/* The same, but an LLVM that gives up becomes an error. */
static int
compile_module_guarded(struct hed_lower *l)
{
    sigjmp_buf back;
    int err;

    if (sigsetjmp(back, 0) != 0) {
        gives_up = NULL;
        hed_why_set(l->why, "LLVM gave up: %s", gave_up);
        return HED_ENOTSUP;
    }
    gives_up = &back;
    err = compile_module(l);
    gives_up = NULL;
    return err;
}

static int
compile_as(const struct hed_lower_shape *shape, const struct hed_ptx_unit *unit,
           const struct hed_ptx_module *m, const struct hed_ptx_func *kernel,
           const struct hed_ptx_options *o, struct hed_buf *object, struct hed_why *why,
           bool *is_hopeless)
{
    struct hed_lower l = {
        .ptx = m, .kernel = kernel, .options = o, .shape = shape, .unit = unit, .why = why};
    int err = make_machine(o, &l.machine, why);

    if (err != 0)
        return err;
    l.object = object;
    l.lanes = HED_PTX_LANES;
    l.context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(l.context, keep_diagnostic, &l);
    l.module = LLVMModuleCreateWithNameInContext(kernel->name, l.context);
    l.b = LLVMCreateBuilderInContext(l.context);
    make_types(&l);
    gave_up[0] = 0;
    err = compile_module_guarded(&l);
    *is_hopeless = l.is_hopeless;
    if (err == 0 && o->info)
        *o->info = l.info;
    if (gave_up[0])
        return err; /* LLVM's objects may be in any state: leak them */
    LLVMDisposeBuilder(l.b);
    LLVMDisposeModule(l.module);
    LLVMContextDispose(l.context);
    LLVMDisposeTargetMachine(l.machine);
    return err;
}

/* A kernel that one shape refuses can be compiled with the next. So can one that we compile
 * wrongly, but debug builds report that. */
static bool
is_worth_another_shape(int err)
{
#ifdef HED_DEBUG
    return err == HED_ENOTSUP;
#else
    return err == HED_ENOTSUP || err == HED_ESTATE;
#endif
}

static int
compile_in_some_shape(const struct hed_ptx_unit *unit, const struct hed_ptx_module *m,
                      const struct hed_ptx_func *kernel, const struct hed_ptx_options *o,
                      struct hed_buf *object, struct hed_why *why)
{
    bool is_hopeless = false;
    const int err = compile_as(&hed_lower_mask, unit, m, kernel, o, object, why, &is_hopeless);

    return is_worth_another_shape(err) && !is_hopeless
               ? compile_as(&hed_lower_warp, unit, m, kernel, o, object, why, &is_hopeless)
               : err;
}

/* The same, and again without AVX-512 if LLVM may have got it wrong: ternary.c. */
static int
compile_unit(const struct hed_ptx_unit *unit, const struct hed_ptx_module *m,
             const struct hed_ptx_func *kernel, const struct hed_ptx_options *o,
             struct hed_buf *object, struct hed_why *why)
{
    const size_t before = object->size;
    char features[512];
    struct hed_ptx_options less = *o;
    int err = compile_in_some_shape(unit, m, kernel, o, object, why);

    less.features = features;
    if (err != 0 || !o->features ||
        !hed_lower_without_avx512(o->features, features, sizeof(features)) ||
        !hed_lower_may_be_wrong_ternary(object->data + before, object->size - before))
        return err;
    hed_buf_cut(object, before);
    return compile_in_some_shape(unit, m, kernel, &less, object, why);
}

int
hed_ptx_compile(const struct hed_ptx_module *m, const struct hed_ptx_func *kernel,
                const struct hed_ptx_options *o, struct hed_buf *object, struct hed_why *why)
{
    struct hed_ptx_unit unit;
    int err;

    hed_why_set(why, "%s", "");
    pthread_once(&once, init_target);
    if (!is_target_ready) {
        hed_why_set(why, "LLVM cannot make code for this machine");
        return HED_ENOTSUP;
    }
    if (!kernel->is_entry || !kernel->has_body) {
        hed_why_set(why, "%s is not a kernel", kernel->name);
        return HED_EINVAL;
    }
    if (kernel->refused) {
        const struct hed_ptx_refusal *r = kernel->refused;

        hed_why_set(why, "%s: '%s' (function %s, line %u)", r->why, r->text, r->func->name,
                    r->line);
        return HED_ENOTSUP;
    }
    err = hed_ptx_unit_init(&unit, m, kernel);
    if (err != 0) {
        hed_why_set(why, "the kernel cannot be laid out: %s", hed_err_text(err));
        return err;
    }
    err = compile_unit(&unit, m, kernel, o, object, why);
    hed_ptx_unit_fini(&unit);
    return err;
}

static const char version[] = "LLVM " HED_LLVM_VERSION ", heddle code 1, abi " STRING(HED_PTX_ABI);

__attribute__((visibility("default"))) const struct hed_ptx_compiler hed_ptx_compiler_llvm = {
    .abi = HED_PTX_ABI,
    .compile = hed_ptx_compile,
    .version = version,
};
