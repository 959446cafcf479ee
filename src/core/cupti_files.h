/* Where to look for CUPTI: for the injected library, which loads it, and for heddle doctor, which
 * checks whether it is there. */
#pragma once

/* The newest first: CUPTI works with drivers that are newer than itself. */
#define HED_CUPTI_SONAMES "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"

/* Folders of the toolkit that the loader may not know. */
#define HED_CUPTI_FOLDERS                                                                 \
    "/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64", "/usr/local/cuda/lib", \
        "/opt/cuda/extras/CUPTI/lib64"
