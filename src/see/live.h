/* What other storeys see of what runs now. */
#pragma once

#include "see/live/live.h"
