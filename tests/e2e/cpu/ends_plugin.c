/* A plug-in for ends.c: when it is unloaded, it calls the program, as the destructor of a library
 * with device code calls CUDA. */

__attribute__((visibility("default"))) extern void (*plugin_at_unload)(void);
void (*plugin_at_unload)(void);

__attribute__((destructor)) static void
tell_program(void)
{
    if (plugin_at_unload)
        plugin_at_unload();
}
