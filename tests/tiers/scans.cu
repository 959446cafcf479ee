/* CUB's algorithms of one pass: blocks look back at what earlier blocks have published, {status,
 * value} in one access of 4, 8 or 16 bytes, or with fences between the two. */
#include <cub/cub.cuh>

#include "check.cuh"

/* x -> a x + b, modulo 2^64: composing two is associative, and their order matters. 16 bytes, so
 * blocks publish status and value one after the other. */
struct Affine {
    uint64_t a, b;
};

struct Compose {
    __host__ __device__ Affine operator()(const Affine &f, const Affine &g) const
    {
        return {f.a * g.a, g.a * f.b + g.b};
    }
};

struct IsOdd {
    template <typename T> __host__ __device__ bool operator()(T x) const
    {
        return (x & 1) != 0;
    }
};

struct Equal {
    template <typename T> __host__ __device__ bool operator()(const T &a, const T &b) const
    {
        return a == b;
    }
};

template <typename T> static std::vector<T> make_input(Random &random, size_t n, uint64_t below)
{
    std::vector<T> in(n);

    for (T &x : in)
        x = (T)(below ? random.below(below) : random.next());
    return in;
}

template <typename T>
static void scan_sums(const Round &round, const char *name, uint64_t below)
{
    Random random = {round.seed * 31 + sizeof(T)};
    const std::vector<T> in = make_input<T>(random, round.elements, below);
    std::vector<T> inclusive(in.size()), exclusive(in.size());
    T sum = 0;

    for (size_t i = 0; i < in.size(); i++) {
        exclusive[i] = sum;
        sum = (T)(sum + in[i]);
        inclusive[i] = sum;
    }

    Device<T> from(in), to(in.size());

    RUN_CUB(cub::DeviceScan::InclusiveSum, from.at, to.at, (int)in.size());
    expect_same(round, (std::string("InclusiveSum ") + name).c_str(), to.fetch(), inclusive);
    RUN_CUB(cub::DeviceScan::ExclusiveSum, from.at, to.at, (int)in.size());
    expect_same(round, (std::string("ExclusiveSum ") + name).c_str(), to.fetch(), exclusive);
}

static void scan_affine(const Round &round)
{
    Random random = {round.seed * 37};
    std::vector<Affine> in(round.elements), want(round.elements);

    for (Affine &f : in)
        f = {random.next() | 1, random.next()};
    for (size_t i = 0; i < in.size(); i++)
        want[i] = i ? Compose()(want[i - 1], in[i]) : in[i];

    Device<Affine> from(in), to(in.size());

    RUN_CUB(cub::DeviceScan::InclusiveScan, from.at, to.at, Compose(), (int)in.size());
    expect_same(round, "InclusiveScan of 16 bytes", to.fetch(), want);
}

/* Runs of equal keys, of very different lengths. */
template <typename K> static std::vector<K> make_runs(Random &random, size_t n)
{
    std::vector<K> keys(n);
    size_t at = 0;
    K key = 0;

    while (at < n) {
        const uint64_t longest = random.below(8) ? 6 : 3000;

        key = (K)(key + 1 + random.below(3));
        for (uint64_t left = 1 + random.below(longest); left && at < n; left--)
            keys[at++] = key;
    }
    return keys;
}

template <typename K, typename V>
static void reduce_by_key(const Round &round, const char *name)
{
    Random random = {round.seed * 41 + sizeof(K) * 8 + sizeof(V)};
    const std::vector<K> keys = make_runs<K>(random, round.elements);
    const std::vector<V> values = make_input<V>(random, round.elements, 0);
    std::vector<K> want_keys;
    std::vector<V> want_sums;
    std::vector<int> want_lengths;

    for (size_t i = 0; i < keys.size(); i++) {
        if (i == 0 || keys[i] != keys[i - 1]) {
            want_keys.push_back(keys[i]);
            want_sums.push_back(0);
            want_lengths.push_back(0);
        }
        want_sums.back() = (V)(want_sums.back() + values[i]);
        want_lengths.back()++;
    }

    Device<K> from(keys), unique(keys.size());
    Device<V> add(values), sums(keys.size());
    Device<int> count(1), lengths(keys.size());
    const int n = (int)keys.size();

    RUN_CUB(cub::DeviceReduce::ReduceByKey, from.at, unique.at, add.at, sums.at, count.at,
            cuda::std::plus<>(), n);

    const size_t runs = (size_t)count.fetch()[0];
    const std::string text = std::string("ReduceByKey ") + name;

    expect_same(round, text.c_str(), std::vector<size_t>{runs},
                std::vector<size_t>{want_keys.size()});
    expect_same(round, (text + ", keys").c_str(), unique.fetch(runs), want_keys);
    expect_same(round, (text + ", sums").c_str(), sums.fetch(runs), want_sums);
    RUN_CUB(cub::DeviceRunLengthEncode::Encode, from.at, unique.at, lengths.at, count.at, n);
    expect_same(round, "Encode", lengths.fetch(want_lengths.size()), want_lengths);
}

static void select_some(const Round &round)
{
    Random random = {round.seed * 43};
    const std::vector<uint64_t> in = make_input<uint64_t>(random, round.elements, 0);
    std::vector<uint64_t> odd, rest;
    std::vector<char> flags(in.size());

    for (size_t i = 0; i < in.size(); i++) {
        flags[i] = (char)IsOdd()(in[i]);
        (flags[i] ? odd : rest).push_back(in[i]);
    }

    std::vector<uint64_t> parts = odd;

    parts.insert(parts.end(), rest.rbegin(), rest.rend());

    Device<uint64_t> from(in), to(in.size());
    Device<char> flag(flags);
    Device<int> count(1);
    const int n = (int)in.size();

    RUN_CUB(cub::DeviceSelect::Flagged, from.at, flag.at, to.at, count.at, n);
    expect_same(round, "Flagged", to.fetch((size_t)count.fetch()[0]), odd);
    RUN_CUB(cub::DevicePartition::If, from.at, to.at, count.at, n, IsOdd());
    expect_same(round, "Partition", to.fetch(), parts);
}

static void one_round(const Round &round)
{
    scan_sums<uint32_t>(round, "of 4 bytes", 0);
    scan_sums<uint64_t>(round, "of 8 bytes", 0);
    scan_sums<double>(round, "of doubles", 1 << 20); /* exact, so in any order */
    scan_sums<unsigned __int128>(round, "of 128 bits", 0);
    scan_affine(round);
    reduce_by_key<uint32_t, uint32_t>(round, "4 and 4 bytes");
    reduce_by_key<uint32_t, uint64_t>(round, "4 and 8 bytes");
    reduce_by_key<uint64_t, uint64_t>(round, "8 and 8 bytes");
    select_some(round);
}

int main(int argc, char **argv)
{
    return run_rounds(argc, argv, one_round);
}
