/* A program that uses the driver, for secure.py. With an argument it only says who it is. */
#include <stdio.h>
#include <unistd.h>

int cuInit(unsigned int flags);

int
main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        printf("real %u effective %u\n", (unsigned)getuid(), (unsigned)geteuid());
    else
        printf("cuInit = %d\n", cuInit(0));
    return 0;
}
