/* CUB's and Thrust's sorts, segmented reductions and histograms. */
#include <algorithm>
#include <numeric>

#include <cub/cub.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/sort.h>

#include "check.cuh"

struct Wide {
    uint64_t low, high;
};

/* Orders by half of a key only, so that a sort which is not stable shows. */
struct ByHigh {
    __host__ __device__ bool operator()(const Wide &a, const Wide &b) const
    {
        return a.high < b.high;
    }
};

template <typename K, typename V>
static void sort_pairs(const Round &round, const char *name, uint64_t below)
{
    Random random = {round.seed * 47 + sizeof(K) * 8 + sizeof(V)};
    std::vector<K> keys(round.elements), want_keys(round.elements);
    std::vector<V> values(round.elements), want_values(round.elements);
    std::vector<uint32_t> order(round.elements);

    for (size_t i = 0; i < keys.size(); i++) {
        keys[i] = (K)(below ? random.below(below) : random.next());
        memset(&values[i], 0, sizeof(V));
        memcpy(&values[i], &i, std::min(sizeof(V), sizeof i));
    }
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
    for (size_t i = 0; i < order.size(); i++) {
        want_keys[i] = keys[order[i]];
        want_values[i] = values[order[i]];
    }

    Device<K> from(keys), to(keys.size());
    Device<V> with(values), sorted(keys.size());
    const std::string text = std::string("SortPairs ") + name;

    RUN_CUB(cub::DeviceRadixSort::SortPairs, from.at, to.at, with.at, sorted.at,
            (int)keys.size());
    expect_same(round, (text + ", keys").c_str(), to.fetch(), want_keys);
    expect_same(round, (text + ", values").c_str(), sorted.fetch(), want_values);
}

static void sort_stably(const Round &round)
{
    Random random = {round.seed * 53};
    std::vector<Wide> in(round.elements / 2);

    for (size_t i = 0; i < in.size(); i++)
        in[i] = {i, random.below(1000)};

    Device<Wide> at(in);
    std::vector<Wide> want = in;

    std::stable_sort(want.begin(), want.end(), ByHigh());
    thrust::stable_sort(thrust::device, thrust::device_pointer_cast(at.at),
                        thrust::device_pointer_cast(at.at + in.size()), ByHigh());
    CHECK(cudaDeviceSynchronize());
    expect_same(round, "stable_sort of 16 bytes", at.fetch(), want);
}

static std::vector<int> make_offsets(Random &random, size_t n)
{
    std::vector<int> offsets = {0};

    while ((size_t)offsets.back() < n) {
        const uint64_t longest = random.below(16) ? 12 : 4000;
        const size_t next = (size_t)offsets.back() + random.below(longest);

        offsets.push_back((int)std::min(next, n));
    }
    return offsets;
}

static void reduce_segments(const Round &round)
{
    Random random = {round.seed * 59};
    const std::vector<int> offsets = make_offsets(random, round.elements);
    const int segments = (int)offsets.size() - 1;
    std::vector<uint64_t> in(round.elements), want_sum, want_least;

    for (uint64_t &x : in)
        x = random.next();
    for (int s = 0; s < segments; s++) {
        uint64_t sum = 0, least = UINT64_MAX;

        for (int i = offsets[s]; i < offsets[s + 1]; i++) {
            sum += in[i];
            least = std::min(least, in[i]);
        }
        want_sum.push_back(sum);
        want_least.push_back(least);
    }

    Device<uint64_t> from(in), to(segments);
    Device<int> at(offsets);

    RUN_CUB(cub::DeviceSegmentedReduce::Sum, from.at, to.at, segments, at.at, at.at + 1);
    expect_same(round, "SegmentedReduce sum", to.fetch(), want_sum);
    RUN_CUB(cub::DeviceSegmentedReduce::Min, from.at, to.at, segments, at.at, at.at + 1);
    expect_same(round, "SegmentedReduce min", to.fetch(), want_least);
}

static void count_levels(const Round &round)
{
    Random random = {round.seed * 61};
    std::vector<unsigned char> in(round.elements);
    std::vector<int> want(256);

    for (unsigned char &x : in) {
        x = (unsigned char)(random.next() & random.next());
        want[x]++;
    }

    Device<unsigned char> from(in);
    Device<int> to(256);

    RUN_CUB(cub::DeviceHistogram::HistogramEven, from.at, to.at, 257, 0, 256, (int)in.size());
    expect_same(round, "Histogram", to.fetch(), want);
}

static void one_round(const Round &round)
{
    sort_pairs<uint32_t, uint32_t>(round, "4 and 4 bytes", 0);
    sort_pairs<uint32_t, Wide>(round, "few keys, 16 bytes", 100);
    sort_pairs<uint64_t, uint64_t>(round, "8 and 8 bytes", 0);
    sort_stably(round);
    reduce_segments(round);
    count_levels(round);
}

int main(int argc, char **argv)
{
    return run_rounds(argc, argv, one_round);
}
