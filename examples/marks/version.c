/* Prints the version of the heddle that it was linked with. */
#include <heddle.h>
#include <stdio.h>

int
main(void)
{
    printf("heddle %s\n", heddle_version());
    return 0;
}
