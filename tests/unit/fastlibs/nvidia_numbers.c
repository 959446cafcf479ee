/* What NVIDIA's headers say. cuDNN's may not be there. See numbers.h. */
#include "numbers.h"

#include <cublasLt.h>
#include <stddef.h>

const struct number nvidia_numbers[] = {NUMBERS(NUMBER){NULL, 0}};

#if __has_include(<cudnn.h>)
#include <cudnn.h>

const struct number nvidia_cudnn_numbers[] = {CUDNN_NUMBERS(NUMBER){NULL, 0}};
#else
const struct number nvidia_cudnn_numbers[] = {{NULL, 0}};
#endif
