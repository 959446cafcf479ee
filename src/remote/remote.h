/* What other storeys see of a GPU elsewhere: addresses, connections, messages, and questions to a
 * server. The client is client.h.
 */
#pragma once

#include "remote/wire/ask.h"
#include "remote/wire/conn.h"
#include "remote/wire/link/link.h"
#include "remote/wire/order.h"
#include "remote/wire/tls/cert.h"
#include "remote/wire/transport.h"
#include "remote/wire/window.h"
#include "remote/wire/wire.h"
