/* Fuzz target: the file of a server's options (heddle serve --config). A refusal names the line;
 * whatever is accepted is in range and terminated. Files that options name are not there. */
#include "harness/fuzz.h"

#include <string.h>

#include "base/err.h"
#include "remote/server/listener/listener.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hed_server_options o;
    struct hed_why why = {""};

    memset(&o, 0, sizeof o);

    const int err = hed_server_config_parse(&o, (const char *)data, size, "input", &why);

    must(err <= 0);
    must(err == 0 || strncmp(why.text, "input:", 6) == 0);
    must(o.listen_count <= HED_LISTENERS_MAX);
    must(o.uid_count <= HED_ALLOW_MAX && o.gid_count <= HED_ALLOW_MAX);
    must(o.clients <= HED_LEDGER_WORKERS && o.mode <= 0777);
    must(strnlen(o.gpu, sizeof o.gpu) < sizeof o.gpu);
    must(strnlen(o.log, sizeof o.log) < sizeof o.log);
    must(strnlen(o.images, sizeof o.images) < sizeof o.images);
    must(strnlen(o.tls.ca, sizeof o.tls.ca) < sizeof o.tls.ca);
    must(o.help == false && o.config[0] == '\0');
    must(o.worker_uids[0] <= o.worker_uids[1]);
    return 0;
}
