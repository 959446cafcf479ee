/* Sorting, scanning and reducing with the toolkit's own templates. */
#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/scan.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

template <typename T>
void
all(T *p, int n)
{
    thrust::device_ptr<T> b(p);
    size_t bytes = 0;

    thrust::sort(b, b + n);
    thrust::inclusive_scan(b, b + n, b);
    thrust::unique(b, b + n);
    cub::DeviceRadixSort::SortKeys(nullptr, bytes, p, p, n);
    cub::DeviceReduce::Sum(nullptr, bytes, p, p, n);
    cub::DeviceHistogram::HistogramEven(nullptr, bytes, p, (int *)nullptr, 10, T(0), T(9), n);
    cub::DeviceSelect::Flagged(nullptr, bytes, p, (char *)nullptr, p, (int *)nullptr, n);
}

void
use(int *i, float *f, double *d, unsigned long long *u, unsigned char *c)
{
    all(i, 9);
    all(f, 9);
    all(d, 9);
    all(u, 9);
    all(c, 9);
}
