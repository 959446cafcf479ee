/* The CPU time of the busiest thread of this process, between two moments. */
#pragma once

void busiest_begin(void);
/* Seconds since busiest_begin(). */
double busiest_seconds(void);
