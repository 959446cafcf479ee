/* Messages for the callbacks that a program has registered (cuLogsRegisterCallback). */
#pragma once

#include "core/layer.h"

/* Calls every callback, which may change the text. The caller holds no lock. */
void hed_logs_tell(CUlogLevel level, char *text);
