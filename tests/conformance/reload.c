/* Loading and unloading the library many times: it stays loaded, with one chain and one trace. */
#include "conf_trace.h"

#define ROUNDS 100

static int
load_and_unload(void)
{
    void *first = NULL;

    for (int i = 0; i < ROUNDS; i++) {
        void *library = conf_open();
        __typeof__(&cuDriverGetVersion) version;
        int n = 0;

        *(void **)&version = dlsym(library, "cuDriverGetVersion");
        CHECK(version, "%s", dlerror());
        CHECK(!first || first == (void *)version, "it moved");
        first = (void *)version;
        CHECK_IS(version(&n), CUDA_SUCCESS);
        CHECK_IS(dlclose(library), 0);
        /* An address that was handed out stays valid after dlclose(). */
        CHECK_IS(version(&n), CUDA_SUCCESS);
    }
    return 0;
}

int
main(int argc, char **argv)
{
    char path[4096];
    char text[4096];
    const char *const env[] = {"HEDDLE_TRACE", conf_path(path, sizeof path, "t.hed"), NULL};

    if (argc > 1)
        return load_and_unload();

    const int status = conf_again("run", text, sizeof text, env);

    CHECK(status == 0, "%s", text);
    CHECK_IS(conf_trace_files(NULL, 0), 1);

    struct hed_trace *t = conf_trace_open(path);

    CHECK(hed_trace_state(t)->ended, "no end");
    CHECK_IS(conf_trace_count(t, HED_TRACE_CALL, "cuDriverGetVersion"), 2 * ROUNDS);
    hed_trace_close(t);
    return 0;
}
