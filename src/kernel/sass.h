/* What other storeys see of kernel/sass: machine code as text, and as PTX. */
#pragma once

#include "kernel/sass/lift.h"
#include "kernel/sass/text.h"
