/* The doctor on a server of GPUs, where the setting `gpu` says that programs use one: whether it
 * can be reached, lets this user in, and shows devices. Asked as a program would, through the
 * library. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/doctor/doctor.h"
#include "cli/env.h"
#include "cli/place.h"
#include "cli/probe.h"

#define NAME "server"

static void
report(struct hed_doctor *d, const struct hed_probe *p)
{
    const char *gpu = d->config.gpu;
    const char *hint;
    char text[1024];

    if (hed_probe_ok(p) && p->count > 0) {
        hed_doctor_say(d, HED_FINDING_OK, NAME, "%s: %d device%s, %s%s", gpu, p->count,
                       p->count == 1 ? "" : "s", p->devices[0].name, p->count > 1 ? ", ..." : "");
    } else if (hed_probe_ok(p)) {
        hed_doctor_say(d, HED_FINDING_WARN, NAME, "%s: answers, and shows no device", gpu);
        hed_doctor_hint(d, "Look at CUDA_VISIBLE_DEVICES, and at `heddle doctor` over there.");
    } else {
        hed_probe_explain(p, text, sizeof text, &hint);
        hed_doctor_say(d, HED_FINDING_FAIL, NAME, "%s", text);
        hed_doctor_hint(d, "The setting `gpu` is %.200s: programs under heddle cannot begin.%s",
                        gpu, p->said[0] ? "" : " Look at the server's log.");
    }
}

void
hed_doctor_server(struct hed_doctor *d)
{
    struct hed_place place;
    struct hed_env env;
    struct hed_why why = {""};

    /* That our libraries are missing is another finding. */
    if (!hed_config_gpu_is_address(d->config.gpu) || hed_place_find(&place, &why) != 0)
        return;
    hed_env_init(&env, environ);
    hed_env_set_setting(&env, "gpu", d->config.gpu);
    hed_env_set_setting(&env, "trace", "");
    hed_env_set_setting(&env, "log", "error");

    struct hed_probe *p = env.failed ? NULL : hed_probe_create(place.lib[HED_PLACE_CUDA], env.vars);

    if (p) {
        p->listen = true;
        hed_probe_cuda(p);
        report(d, p);
    }
    hed_probe_free(p);
    hed_env_fini(&env);
}
