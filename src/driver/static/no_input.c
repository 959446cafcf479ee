/* What jansson takes for its standard input where it is linked statically (HEDDLE_STATIC).
 *
 * Debian's libjansson.a is made for programs: its code expects stdin at a fixed distance, which a
 * library cannot have of a variable of the C library. It only asks whether a file that it reads is
 * stdin, to call it so in messages. We never give it that file, so the link gives it this one
 * (--defsym), which nothing is equal to.
 */
#include <stdio.h>

extern FILE *const hed_driver_no_input;

FILE *const hed_driver_no_input = NULL;
