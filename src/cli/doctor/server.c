/* If the setting `gpu` names a server, the doctor checks that it can be reached, accepts this user
 * and shows devices. It asks through the library, as a program would. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/err.h"
#include "cli/doctor/doctor.h"
#include "cli/probe.h"
#include "locate/install.h"

#define NAME "server"

static void
report_server(struct hed_doctor *d, const struct hed_probe *p)
{
    const char *gpu = d->config.gpu;
    const char *hint;
    char text[1024];

    if (hed_probe_ok(p) && p->count > 0) {
        hed_doctor_say(d, HED_FINDING_OK, NAME, "%s: %d device%s, %s%s", gpu, p->count,
                       p->count == 1 ? "" : "s", p->devices[0].name, p->count > 1 ? ", ..." : "");
    } else if (hed_probe_ok(p)) {
        hed_doctor_say(d, HED_FINDING_WARN, NAME, "%s answers, but shows no device", gpu);
        hed_doctor_hint(d, "Check CUDA_VISIBLE_DEVICES, and run `heddle doctor` on the server.");
    } else {
        hed_probe_explain(p, text, sizeof text, &hint);
        hed_doctor_say(d, HED_FINDING_FAIL, NAME, "%s", text);
        hed_doctor_hint(d, "The setting `gpu` is %.200s, so programs under heddle cannot start.%s",
                        gpu, p->said[0] ? "" : " Check the server's log.");
    }
}

void
hed_doctor_server(struct hed_doctor *d)
{
    struct hed_install install;
    struct hed_env env;
    struct hed_why why = {""};

    /* Missing libraries are another finding. */
    if (!hed_config_gpu_is_address(d->config.gpu) || hed_install_find(&install, &why) != 0)
        return;
    hed_env_init(&env, environ);
    hed_env_set_setting(&env, "gpu", d->config.gpu);
    hed_env_set_setting(&env, "trace", "");
    hed_env_set_setting(&env, "log", "error");

    struct hed_probe *p =
        env.failed ? NULL : hed_probe_create(install.lib[HED_INSTALL_CUDA], env.vars);

    if (p) {
        p->listen = true;
        hed_probe_cuda(p);
        report_server(d, p);
    }
    hed_probe_free(p);
    hed_env_fini(&env);
}
