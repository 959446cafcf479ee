// Writes past the end of an array on purpose: a memory checker must find it.
__global__ void past(int *a)
{
    a[threadIdx.x + 64] = 1;
}

int main()
{
    int *a = nullptr;

    cudaMalloc(&a, 64 * sizeof(int));
    past<<<1, 32>>>(a);
    return cudaDeviceSynchronize() != cudaSuccess;
}
