/* Some of LLVM's names, which must not be called. */
#include <stdlib.h>

#define NAME(name)                                         \
    void name(void);                                       \
    __attribute__((visibility("default"))) void name(void) \
    {                                                      \
        abort();                                           \
    }

NAME(LLVMContextCreate)
NAME(LLVMModuleCreateWithNameInContext)
NAME(LLVMCreateBuilderInContext)
NAME(LLVMGetTargetFromTriple)
NAME(LLVMCreateTargetMachine)
NAME(LLVMRunPasses)
NAME(_ZN4llvm11LLVMContextC1Ev)
NAME(_ZN4llvm6ModuleC1ENS_9StringRefERNS_11LLVMContextE)
NAME(_ZN4llvm9StringRef4findES0_m)
NAME(_ZN4llvm15SmallVectorBaseIjE8grow_podEPvmm)
NAME(_ZN4llvm24DisableABIBreakingChecksE)
NAME(_ZN4llvm12PassRegistry15getPassRegistryEv)
