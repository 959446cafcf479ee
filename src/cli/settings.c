/* Settings as the command line checks them: what the library would refuse later, refused now. */
#include "base/log.h"
#include "cli/cli.h"
#include "core/config.h"

int
hed_cli_settings(struct hed_config *c, char *const *env, struct hed_why *why)
{
    const int err = hed_config_load(c, env, why);

    return err ? err : hed_log_setup(c->log, why);
}
