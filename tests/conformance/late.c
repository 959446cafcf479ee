/* A library that calls a function when the process ends, after everything loaded before it. */
void (*late_call)(void) __attribute__((visibility("default")));

__attribute__((destructor)) static void
at_the_end(void)
{
    if (late_call)
        late_call();
}
