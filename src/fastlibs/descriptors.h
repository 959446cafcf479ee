/* What a program has said in cuDNN's descriptors, which cuDNN does not tell again: tensors and
 * convolutions, what they were put into, and which plan is for which of them.
 *
 * Descriptors are told by their address. What a descriptor says is copied when it is put into
 * another one: cuDNN takes only descriptors that do not change any more.
 */
#pragma once

#include <stdint.h>

#include "fastlibs/convolution.h"

/* cuDNN has taken an attribute of a descriptor: cudnnBackendSetAttribute(). */
void hed_descriptors_set(const void *descriptor, int attribute, int type, int64_t count,
                         const void *elements);

/* cuDNN has filled descriptors in: cudnnBackendGetAttribute() with descriptors as elements. */
void hed_descriptors_filled(const void *descriptor, int attribute, int64_t count,
                            const void *elements);

/* cudnnBackendDestroyDescriptor() */
void hed_descriptors_forget(const void *descriptor);

/* In the child of a fork: another thread of the parent may have been in here. */
void hed_descriptors_forked(void);

enum hed_described {
    HED_DESCRIBED_NOT,   /* there is no convolution in it, or nothing is known about it */
    HED_DESCRIBED_OTHER, /* a convolution, with more than hed_convolution_run() can do */
    HED_DESCRIBED_PLAIN, /* one convolution and nothing else: it is in `out` */
};

/* What does a plan do with the tensors of a variant pack? Sizes are as the program said. */
enum hed_described hed_descriptors_find(const void *plan, const void *pack,
                                        struct hed_convolution *out);
