/* What NVIDIA's headers say. cuDNN's may not be there. See numbers.h. */
#include "numbers.h"

#include <cublasLt.h>
#include <stddef.h>

const struct number nvidia_numbers[] = {NUMBERS(NUMBER){NULL, 0}};

#if CUBLAS_VERSION >= 120205 && CUBLAS_VERSION < 130000
const struct number nvidia_counter_numbers[] = {COUNTER_NUMBERS(NUMBER){NULL, 0}};
#else
const struct number nvidia_counter_numbers[] = {{NULL, 0}};
#endif

#if __has_include(<cudnn.h>)
#include <cudnn.h>

const struct number nvidia_cudnn_numbers[] = {CUDNN_NUMBERS(NUMBER){NULL, 0}};
#else
const struct number nvidia_cudnn_numbers[] = {{NULL, 0}};
#endif
