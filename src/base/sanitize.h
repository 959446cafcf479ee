/* Which sanitizers the code is built with: HED_ASAN, HED_TSAN and HED_SANITIZED (one of them) are 1
 * or 0. gcc has macros for it, clang and later gccs answer __has_feature(). */
#pragma once

#ifdef __has_feature
#define HED_HAS_FEATURE(x) __has_feature(x)
#else
#define HED_HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || HED_HAS_FEATURE(address_sanitizer)
#define HED_ASAN 1
#else
#define HED_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || HED_HAS_FEATURE(thread_sanitizer)
#define HED_TSAN 1
#else
#define HED_TSAN 0
#endif
#define HED_SANITIZED (HED_ASAN || HED_TSAN)
