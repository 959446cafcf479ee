/* What other storeys see of kernel/fatbin: fat binaries, cubins and the head of PTX text. */
#pragma once

#include "kernel/fatbin/arch.h"
#include "kernel/fatbin/atomics.h"
#include "kernel/fatbin/bytes.h"
#include "kernel/fatbin/codes.h"
#include "kernel/fatbin/cubin.h"
#include "kernel/fatbin/elf.h"
#include "kernel/fatbin/fatbin.h"
#include "kernel/fatbin/file.h"
#include "kernel/fatbin/find.h"
#include "kernel/fatbin/image.h"
#include "kernel/fatbin/imports.h"
#include "kernel/fatbin/ptx_text.h"
