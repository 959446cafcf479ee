/* Plays libcudnn.so.9: takes everything that it is told, chooses one engine, and answers 97 when it
 * has to compute. */
#include <stdlib.h>

#include "played.h"

int
cudnnGetStream(void *handle, void **stream)
{
    if (!handle)
        return 1001;
    *stream = ((struct played_handle *)handle)->stream;
    return 0;
}

int
cudnnBackendCreateDescriptor(int type, void **out)
{
    (void)type;
    *out = malloc(1);
    return *out ? 0 : 1;
}

int
cudnnBackendDestroyDescriptor(void *descriptor)
{
    free(descriptor);
    return 0;
}

int
cudnnBackendSetAttribute(void *descriptor, int attribute, int type, int64_t count,
                         const void *elements)
{
    (void)descriptor;
    (void)attribute;
    (void)type;
    (void)elements;
    return count < 1 ? 2000 : 0;
}

/* The program made the descriptors that it wants to have filled in. */
int
cudnnBackendGetAttribute(void *descriptor, int attribute, int type, int64_t count,
                         int64_t *returned, void *elements)
{
    (void)descriptor;
    (void)type;
    (void)count;
    (void)elements;
    if (attribute != 202)
        return 3000;
    *returned = 1;
    return 0;
}

int
cudnnBackendExecute(void *handle, void *plan, void *pack)
{
    (void)handle;
    (void)plan;
    (void)pack;
    return 97;
}
