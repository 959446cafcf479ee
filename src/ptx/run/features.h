/* What this processor can do. */
#pragma once

#include <stddef.h>

/* The features that the processor reports, by LLVM's names ("+lse,+fullfp16"). Not those that the
 * processor's model is known to have: a virtual machine may hide some. */
void hed_ptx_features(char *text, size_t size);
