/* What the listener sends with each descriptor over the control socket of a worker. */
#pragma once

#include <stdint.h>

#include "remote/wire/conn.h"

struct hed_handed {
    uint32_t kind; /* enum hed_preface_kind: what the connection is for */
    uint32_t reserved;
    struct hed_conn_state state; /* where it goes on; of a connection that is not secured: zeros */
};
