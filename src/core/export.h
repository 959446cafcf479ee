/* What may be seen from outside the library it is in; everything else is hidden. */
#pragma once

#define HED_EXPORT __attribute__((visibility("default")))
