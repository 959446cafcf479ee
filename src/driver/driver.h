/* What backends and the far machine see of the soft driver: the driver itself (parts.h), where work
 * runs (machine.h, near/near.h), and the objects that such a machine gets to see.
 */
#pragma once

#include "driver/context/context.h"
#include "driver/graph/graph.h"
#include "driver/graph/node.h"
#include "driver/ipc/name.h"
#include "driver/machine.h"
#include "driver/memory/array.h"
#include "driver/memory/memory.h"
#include "driver/memory/memory_index.h"
#include "driver/memory/physical.h"
#include "driver/module/describe.h"
#include "driver/module/image.h"
#include "driver/module/jit.h"
#include "driver/module/launch.h"
#include "driver/module/library.h"
#include "driver/module/module.h"
#include "driver/module/occupancy.h"
#include "driver/near/near.h"
#include "driver/nvml/nvml.h"
#include "driver/parts.h"
#include "driver/shared.h"
#include "driver/space.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"
#include "driver/table/integrity.h"
