/* System-wide atomics on managed memory: a kernel and the program add to the same words at once.
 * The program prints the same on every GPU. */
#include <cstdio>

#define WORDS 256
#define TIMES 1000

__global__ void
count(int *words)
{
    for (int i = 0; i < TIMES; i++)
        atomicAdd_system(&words[threadIdx.x], 1);
}

int
main()
{
    int *words, wrong = 0;

    if (cudaMallocManaged(&words, WORDS * sizeof(int)) != cudaSuccess)
        return 1;
    for (int i = 0; i < WORDS; i++)
        words[i] = 0;
    count<<<1, WORDS>>>(words);
    for (int k = 0; k < TIMES; k++)
        for (int i = 0; i < WORDS; i++)
            __atomic_fetch_add(&words[i], 1, __ATOMIC_SEQ_CST);
    if (cudaDeviceSynchronize() != cudaSuccess)
        return 2;
    for (int i = 0; i < WORDS; i++)
        wrong += words[i] != 2 * TIMES;
    printf("%d words wrong\n", wrong);
    return wrong != 0;
}
