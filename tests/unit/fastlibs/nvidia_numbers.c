/* What NVIDIA's headers say. See numbers.h. */
#include "numbers.h"

#include <cublasLt.h>
#include <stddef.h>

const struct number nvidia_numbers[] = {NUMBERS(NUMBER){NULL, 0}};
