/* The minimum spanning tree of an image's pixels, by Boruvka's steps: a chain of Thrust's sorts,
 * reductions by key, scans, gathers and removals, in which every step needs all of the last. What
 * it finds in each step is compared with a plain program of the host. */
#include <algorithm>
#include <cmath>

#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>

#include "check.cuh"

using Numbers = thrust::device_vector<uint32_t>;
using Weights = thrust::device_vector<uint64_t>; /* weight << 32 | edge: all differ */

/* Every edge twice, once from each end. */
struct Edges {
    std::vector<uint32_t> from, to;
    std::vector<uint64_t> weight;
    uint32_t vertices;
};

static Edges make_image(const Round &round)
{
    Random random = {round.seed * 67};
    const uint32_t width = 1 + (uint32_t)std::sqrt((double)round.elements / 4);
    Edges e;

    e.vertices = width * width;
    for (uint32_t v = 0; v < e.vertices; v++) {
        for (uint32_t d : {1u, width}) {
            if (v + d >= e.vertices || (d == 1 && (v + 1) % width == 0))
                continue;

            const uint64_t w = random.below(5000) << 32 | e.from.size() / 2;

            e.from.insert(e.from.end(), {v, v + d});
            e.to.insert(e.to.end(), {v + d, v});
            e.weight.insert(e.weight.end(), 2, w);
        }
    }
    return e;
}

/* ---- the host's -------------------------------------------------------------------------------*/

/* Labels of all vertices after each step; components are numbered in the order of their root. */
static std::vector<std::vector<uint32_t>> host_levels(const Edges &e, std::vector<uint64_t> &tree)
{
    std::vector<std::vector<uint32_t>> levels;
    std::vector<uint32_t> label(e.vertices);
    uint32_t count = e.vertices;

    for (uint32_t v = 0; v < e.vertices; v++)
        label[v] = v;
    while (count > 1) {
        std::vector<size_t> best(count, SIZE_MAX);
        std::vector<uint32_t> parent(count), number(count);
        uint32_t next = 0;

        for (size_t i = 0; i < e.from.size(); i++) {
            const uint32_t a = label[e.from[i]], b = label[e.to[i]];

            if (a != b && (best[a] == SIZE_MAX || e.weight[i] < e.weight[best[a]]))
                best[a] = i;
        }
        for (uint32_t c = 0; c < count; c++)
            parent[c] = label[e.to[best[c]]];
        for (uint32_t c = 0; c < count; c++)
            if (parent[parent[c]] == c && c < parent[c])
                parent[c] = c;
        for (uint32_t c = 0; c < count; c++)
            if (parent[c] != c)
                tree.push_back(e.weight[best[c]]);
        for (uint32_t c = 0; c < count; c++)
            number[c] = parent[c] == c ? next++ : 0;
        for (uint32_t c = 0; c < count; c++) {
            uint32_t root = c;

            while (parent[root] != root)
                root = parent[root];
            number[c] = number[root];
        }
        for (uint32_t &l : label)
            l = number[l];
        count = next;
        levels.push_back(label);
    }
    std::sort(tree.begin(), tree.end());
    return levels;
}

/* ---- the device's ---------------------------------------------------------------------------- */

struct Target {
    uint64_t weight;
    uint32_t to;
};

struct Lighter {
    __host__ __device__ Target operator()(const Target &a, const Target &b) const
    {
        return b.weight < a.weight ? b : a;
    }
};

struct MakeTarget {
    __host__ __device__ Target operator()(const thrust::tuple<uint64_t, uint32_t> &t) const
    {
        return {thrust::get<0>(t), thrust::get<1>(t)};
    }
};

/* Of two components that chose each other, the first becomes a root. */
struct BreakCircle {
    const Target *targets;

    __device__ uint32_t operator()(uint32_t c) const
    {
        const uint32_t to = targets[c].to;

        return targets[to].to == c && c < to ? c : to;
    }
};

struct Jump {
    const uint32_t *parent;

    __device__ uint32_t operator()(uint32_t p) const
    {
        return parent[p];
    }
};

struct IsRoot {
    const uint32_t *parent;

    __device__ uint32_t operator()(uint32_t c) const
    {
        return parent[c] == c;
    }
};

struct IsInside {
    template <typename T> __host__ __device__ bool operator()(const T &edge) const
    {
        return thrust::get<0>(edge) == thrust::get<1>(edge);
    }
};

struct WeightOf {
    __host__ __device__ uint64_t operator()(const Target &t) const
    {
        return t.weight;
    }
};

struct Graph {
    Numbers from, to, label;
    Weights weight, tree;
    uint32_t count; /* components */
};

/* The lightest edge of each component. Sorting brings a component's edges together. */
static thrust::device_vector<Target> lightest(const Round &round, Graph &g)
{
    Numbers key = g.from, index(g.from.size()), component(g.count);
    Numbers to(g.to.size());
    Weights weight(g.to.size());
    thrust::device_vector<Target> best(g.count);

    thrust::sequence(index.begin(), index.end());
    thrust::sort_by_key(key.begin(), key.end(), index.begin());
    thrust::gather(index.begin(), index.end(), g.to.begin(), to.begin());
    thrust::gather(index.begin(), index.end(), g.weight.begin(), weight.begin());

    auto targets = thrust::make_transform_iterator(
        thrust::make_zip_iterator(thrust::make_tuple(weight.begin(), to.begin())), MakeTarget());
    const auto end =
        thrust::reduce_by_key(key.begin(), key.end(), targets, component.begin(), best.begin(),
                              thrust::equal_to<uint32_t>(), Lighter());
    std::vector<size_t> got = {(size_t)(end.first - component.begin())};

    expect_same(round, "components with edges", got, std::vector<size_t>{g.count});
    return best;
}

static void step(const Round &round, Graph &g)
{
    const thrust::device_vector<Target> best = lightest(round, g);
    const thrust::counting_iterator<uint32_t> all(0);
    Numbers parent(g.count), higher(g.count), number(g.count);

    thrust::transform(all, all + g.count, parent.begin(),
                      BreakCircle{thrust::raw_pointer_cast(best.data())});

    Numbers is_root(g.count);

    thrust::transform(all, all + g.count, is_root.begin(),
                      IsRoot{thrust::raw_pointer_cast(parent.data())});

    const size_t had = g.tree.size();
    const uint32_t roots = thrust::reduce(is_root.begin(), is_root.end());

    g.tree.resize(had + g.count - roots);
    thrust::remove_copy_if(thrust::make_transform_iterator(best.begin(), WeightOf()),
                           thrust::make_transform_iterator(best.end(), WeightOf()),
                           is_root.begin(), g.tree.begin() + had, cuda::std::identity());
    thrust::exclusive_scan(is_root.begin(), is_root.end(), number.begin());
    /* Never more often than a path is long: a wrong parent must not make us wait for ever. */
    for (uint32_t reach = 1; reach < 2 * g.count; reach *= 2) {
        thrust::transform(parent.begin(), parent.end(), higher.begin(),
                          Jump{thrust::raw_pointer_cast(parent.data())});
        parent.swap(higher);
    }

    Numbers fresh(g.count);

    thrust::gather(parent.begin(), parent.end(), number.begin(), fresh.begin());
    for (Numbers *which : {&g.from, &g.to, &g.label}) {
        Numbers moved(which->size());

        thrust::gather(which->begin(), which->end(), fresh.begin(), moved.begin());
        which->swap(moved);
    }

    auto edges = thrust::make_zip_iterator(
        thrust::make_tuple(g.from.begin(), g.to.begin(), g.weight.begin()));
    const size_t left = thrust::remove_if(edges, edges + g.from.size(), IsInside()) - edges;

    g.from.resize(left);
    g.to.resize(left);
    g.weight.resize(left);
    g.count = roots;
}

static void one_round(const Round &round)
{
    const Edges e = make_image(round);
    std::vector<uint64_t> want_tree;
    const std::vector<std::vector<uint32_t>> levels = host_levels(e, want_tree);
    Graph g = {Numbers(e.from), Numbers(e.to), Numbers(e.vertices), Weights(e.weight), Weights(),
               e.vertices};

    thrust::sequence(g.label.begin(), g.label.end());
    for (size_t i = 0; i < levels.size(); i++) {
        std::vector<uint32_t> got(e.vertices);

        step(round, g);
        thrust::copy(g.label.begin(), g.label.end(), got.begin());
        expect_same(round, ("labels of level " + std::to_string(i)).c_str(), got, levels[i]);
    }
    thrust::sort(g.tree.begin(), g.tree.end());

    std::vector<uint64_t> tree(g.tree.size());

    thrust::copy(g.tree.begin(), g.tree.end(), tree.begin());
    expect_same(round, "edges of the tree", tree, want_tree);
}

int main(int argc, char **argv)
{
    return run_rounds(argc, argv, one_round);
}
