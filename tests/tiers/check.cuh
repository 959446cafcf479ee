/* What the programs of this folder share: input from a seed, results that are compared byte for
 * byte with the host's, and a verdict.
 *
 *     PROGRAM [--elements N] [--rounds N] [--seconds N] [--seed S]
 *
 * A round takes N elements or somewhat fewer. Exits with 1 at the first difference, after a line
 * that names it.
 */
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                              \
    do {                                                                                         \
        const cudaError_t error_ = (call);                                                       \
        if (error_ != cudaSuccess) {                                                             \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));    \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)

/* splitmix64 */
struct Random {
    uint64_t state;

    uint64_t next()
    {
        uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);

        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return x ^ (x >> 31);
    }
    uint64_t below(uint64_t n)
    {
        return next() % n;
    }
};

/* Memory of the device, filled with a pattern that no right result has. */
template <typename T> struct Device {
    T *at = nullptr;
    size_t count;

    explicit Device(size_t n) : count(n)
    {
        CHECK(cudaMalloc(&at, bytes() ? bytes() : 1));
        CHECK(cudaMemset(at, 0xa5, bytes()));
    }
    explicit Device(const std::vector<T> &from) : Device(from.size())
    {
        CHECK(cudaMemcpy(at, from.data(), bytes(), cudaMemcpyHostToDevice));
    }
    Device(const Device &) = delete;
    ~Device()
    {
        cudaFree(at);
    }
    size_t bytes() const
    {
        return count * sizeof(T);
    }
    std::vector<T> fetch(size_t n) const
    {
        std::vector<T> to(n);

        CHECK(cudaMemcpy(to.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost));
        return to;
    }
    std::vector<T> fetch() const
    {
        return fetch(count);
    }
};

/* Calls a CUB algorithm twice: for the size of its workspace, and to run it. */
template <typename Call> void run_cub(const char *what, Call call)
{
    size_t bytes = 0;

    if (call(nullptr, bytes) != cudaSuccess) {
        printf("%s: no size of the workspace\n", what);
        exit(1);
    }

    Device<unsigned char> room(bytes ? bytes : 1);

    CHECK(call(room.at, bytes));
    CHECK(cudaDeviceSynchronize());
}
#define RUN_CUB(function, ...)                                                                   \
    run_cub(#function, [&](void *room_, size_t &bytes_) {                                        \
        return function(room_, bytes_, __VA_ARGS__);                                             \
    })

/* What a round is about, for messages. */
struct Round {
    uint64_t seed;
    size_t elements;
};

template <typename T>
void expect_same(const Round &round, const char *what, const std::vector<T> &got,
                 const std::vector<T> &want)
{
    size_t wrong = 0, first = 0;

    for (size_t i = 0; i < want.size(); i++) {
        if (i < got.size() && memcmp(&got[i], &want[i], sizeof(T)) == 0)
            continue;
        if (wrong++ == 0)
            first = i;
    }
    if (wrong == 0 && got.size() == want.size())
        return;
    printf("WRONG %s: seed %llu, %zu elements: %zu of %zu differ (%zu came), first at %zu\n", what,
           (unsigned long long)round.seed, round.elements, wrong, want.size(), got.size(), first);
    if (first < got.size() && wrong) {
        const unsigned char *g = (const unsigned char *)&got[first];
        const unsigned char *w = (const unsigned char *)&want[first];

        for (size_t i = 0; i < sizeof(T); i++)
            printf("%s%02x", i ? "" : "  got ", g[i]);
        for (size_t i = 0; i < sizeof(T); i++)
            printf("%s%02x", i ? "" : "  want ", w[i]);
        printf("\n");
    }
    fflush(stdout);
    exit(1);
}

/* Reads the arguments and runs rounds. */
inline int run_rounds(int argc, char **argv, void (*one_round)(const Round &))
{
    uint64_t elements = 200000, rounds = 1, seconds = 0, seed = 1, done = 0;

    for (int i = 1; i + 1 < argc; i += 2) {
        const uint64_t value = strtoull(argv[i + 1], nullptr, 10);
        const std::string name = argv[i];

        if (name == "--elements")
            elements = value;
        else if (name == "--rounds")
            rounds = value;
        else if (name == "--seconds")
            seconds = value;
        else if (name == "--seed")
            seed = value;
        else
            return 2;
    }

    const time_t start = time(nullptr);

    while (seconds ? (uint64_t)(time(nullptr) - start) < seconds : done < rounds) {
        Random random = {seed};
        /* The last tile of CUB's algorithms is a partial one, of any size. */
        const Round round = {seed++, (size_t)(elements - random.below(elements / 4 + 1))};

        one_round(round);
        done++;
    }
    printf("%llu rounds agree\n", (unsigned long long)done);
    return 0;
}
