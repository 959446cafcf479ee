/* Fuzz target: an archive of compiled kernels. What is accepted is complete and consistent. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "harness/fuzz.h"
#include "kernel/cache/archive.h"
#include "kernel/cache/cache.h"

static int
check_entry(void *arg, const struct hed_cache_entry *e, const void *bytes, size_t size)
{
    const char *end = (const char *)bytes + size;
    const char *object = e->object;

    must(object >= (const char *)bytes && (uint64_t)(end - object) == e->size);
    must(strlen(e->about.name) < HED_CACHE_NAME_MAX);
    must(strlen(e->about.features) < HED_CACHE_FEATURES_MAX);
    must(strlen(e->about.version) < HED_CACHE_VERSION_MAX);
    ++*(unsigned *)arg;
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("archive", MFD_CLOEXEC);
    struct hed_cache_entry e;
    struct hed_why why = {""};
    unsigned count = 0;

    if (fd < 0)
        return 0;
    must(hed_write_all(fd, data, size) == 0);
    must(lseek(fd, 0, SEEK_SET) == 0);
    must((hed_archive_read(fd, check_entry, &count, &why) == 0) == (why.text[0] == '\0'));
    (void)close(fd);
    /* The same bytes as one entry. */
    if (hed_cache_entry_read(data, size, size, &e) == 0)
        (void)check_entry(&count, &e, data, size);
    return 0;
}
