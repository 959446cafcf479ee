/* Textures and surfaces as programs use them: C++ templates of the toolkit, objects made by cudart
 * over arrays, layers, cubes, levels, linear and pitched memory. Checks itself; prints `N checks`.
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define MUST(call)                                                                \
    do {                                                                          \
        const cudaError_t e_ = (call);                                            \
                                                                                  \
        if (e_ != cudaSuccess) {                                                  \
            printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(e_)); \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

enum { W = 16, H = 8, D = 4, N = W * H };

static int checks;

static void
check(const char *what, int i, float got, double want, double within)
{
    checks++;
    if (!(std::fabs(got - want) <= within)) {
        printf("%s, %d: %g, not %g\n", what, i, got, want);
        exit(1);
    }
}

/* The value of a texel: no two neighbours are alike, and sums of them are exact. */
static float
texel(int x, int y, int z)
{
    return (float)((x * 7 + y * 31 + z * 13) % 64);
}

/* ---- kernels --------------------------------------------------------------------------------- */

#define ME (blockIdx.x * blockDim.x + threadIdx.x)

__global__ void
sample1(cudaTextureObject_t t, float *out, float from, float step)
{
    out[ME] = tex1D<float>(t, from + step * ME);
}

__global__ void
sample2(cudaTextureObject_t t, float *out, float dx, float dy, float scale)
{
    out[ME] = tex2D<float>(t, (ME % W + dx) * scale / W, (ME / W + dy) * scale / H);
}

__global__ void
sample3(cudaTextureObject_t t, float *out, float d, int z)
{
    out[ME] = tex3D<float>(t, ME % W + d, ME / W + d, z + d);
}

__global__ void
layers(cudaTextureObject_t t, float *out, int layer)
{
    out[ME] = tex2DLayered<float>(t, ME % W + 0.5f, ME / W + 0.5f, layer);
}

__global__ void
faces(cudaTextureObject_t t, float *out)
{
    float at[3] = {0.1f, 0.2f, -0.1f};

    at[ME / 2] = ME % 2 ? -1.0f : 1.0f;
    out[ME] = texCubemap<float>(t, at[0], at[1], at[2]);
}

__global__ void
fetches(cudaTextureObject_t t, float *out)
{
    const uchar4 v = tex1Dfetch<uchar4>(t, (int)ME - 4);

    out[ME] = v.x + 256.0f * v.y + 65536.0f * v.w;
}

__global__ void
bytes(cudaTextureObject_t t, float4 *out)
{
    out[ME] = tex2D<float4>(t, ME % W + 0.5f, ME / W + 0.5f);
}

__global__ void
gathers(cudaTextureObject_t t, float4 *out)
{
    out[ME] = tex2Dgather<float4>(t, ME % W + 1.0f, ME / W + 1.0f, 0);
}

__global__ void
levels(cudaTextureObject_t t, float *out)
{
    out[ME] = tex2DLod<float>(t, 0.5f, 0.5f, ME * 0.5f);
}

__global__ void
turn(cudaSurfaceObject_t from, cudaSurfaceObject_t to)
{
    const int x = ME % W, y = ME / W;
    float v;

    surf2Dread(&v, from, x * (int)sizeof v, y);
    surf2Dwrite(v + 1, to, (W - 1 - x) * (int)sizeof v, y);
    surf2Dwrite(v, to, W * (int)sizeof v, y, cudaBoundaryModeZero);
}

/* Objects from memory: machine code keeps the lower halves of them in registers. */
__global__ void
chosen(const cudaTextureObject_t *t, const cudaSurfaceObject_t *s, float4 *out)
{
    const int x = ME % W, y = ME / W;
    const float2 none = make_float2(0, 0);
    float4 v;

    surf2Dread(&v.x, s[0], x * (int)sizeof v.x, y);
    surf2Dwrite(v.x + 1, s[1], x * (int)sizeof v.x, y);
    v.x += 64 * tex2D<float>(t[ME % 2], (x + 0.5f) / W, (y + 0.5f) / H);
    v.y = tex3D<float>(t[2], x + 0.5f, y + 0.5f, 2.5f);
    v.z = tex2DLayered<float>(t[3], x + 0.5f, y + 0.5f, 3) +
          64 * tex2DGrad<float>(t[1], (x + 0.5f) / W, (y + 0.5f) / H, none, none);
    v.w = tex2Dgather<float4>(t[4], x + 1.0f, y + 1.0f, 0).w;
    out[ME] = v;
}

/* ---- objects --------------------------------------------------------------------------------- */

static float *out; /* N float4 */
static std::vector<float> got;
static std::vector<float4> quads;

template <class T>
static std::vector<T>
back(int count)
{
    std::vector<T> v(count);

    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(v.data(), out, count * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}

static cudaArray_t
make_array(int w, int h, int d, unsigned flags)
{
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    const int rows = h ? h : 1, planes = d ? d : 1;
    std::vector<float> data(w * rows * planes);
    cudaMemcpy3DParms p = {};
    cudaArray_t a;

    for (size_t i = 0; i < data.size(); i++)
        data[i] = texel((int)i % w, (int)i / w % rows, (int)i / (w * rows));
    MUST(cudaMalloc3DArray(&a, &format, make_cudaExtent(w, h, d), flags));
    p.srcPtr = make_cudaPitchedPtr(data.data(), w * sizeof(float), w, rows);
    p.dstArray = a;
    p.extent = make_cudaExtent(w, rows, planes);
    p.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&p));
    return a;
}

static cudaTextureObject_t
make_texture(const cudaResourceDesc &r, cudaTextureAddressMode mode, cudaTextureFilterMode filter,
             bool normalized, bool parts = false)
{
    cudaTextureDesc d = {};
    cudaTextureObject_t t;

    d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = mode;
    d.filterMode = filter;
    d.normalizedCoords = normalized;
    d.readMode = parts ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    d.maxMipmapLevelClamp = 10;
    MUST(cudaCreateTextureObject(&t, &r, &d, nullptr));
    return t;
}

static cudaResourceDesc
of(cudaArray_t a)
{
    cudaResourceDesc r = {};

    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    return r;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void
check_lines()
{
    const cudaArray_t a = make_array(W, 0, 0, 0);
    const cudaTextureObject_t wrap =
        make_texture(of(a), cudaAddressModeWrap, cudaFilterModePoint, true);
    const cudaTextureObject_t mirror =
        make_texture(of(a), cudaAddressModeMirror, cudaFilterModePoint, true);
    const cudaTextureObject_t border =
        make_texture(of(a), cudaAddressModeBorder, cudaFilterModeLinear, false);

    sample1<<<3, 32>>>(wrap, out, -2 + 0.5f / W, 1.0f / W);
    got = back<float>(96);
    for (int i = 0; i < 96; i++)
        check("wrap", i, got[i], texel(i % W, 0, 0), 0);
    sample1<<<3, 32>>>(mirror, out, -2 + 0.5f / W, 1.0f / W);
    got = back<float>(96);
    for (int i = 0; i < 96; i++)
        check("mirror", i, got[i], texel(i / W % 2 ? W - 1 - i % W : i % W, 0, 0), 0);
    sample1<<<3, 32>>>(border, out, -8, 1);
    got = back<float>(96);
    for (int i = 0; i < 96; i++) { /* half way between two, and between their row and the border */
        const int x = i - 8;
        const double low = x >= 1 && x <= W ? texel(x - 1, 0, 0) : 0;
        const double high = x >= 0 && x < W ? texel(x, 0, 0) : 0;

        check("border", i, got[i], (low + high) / 4, 0);
    }
}

static void
check_planes()
{
    const cudaArray_t a = make_array(W, H, 0, 0);
    const cudaArray_t cube = make_array(W, H, D, 0);
    const cudaArray_t stack = make_array(W, H, D, cudaArrayLayered);
    const cudaArray_t sky = make_array(W, W, 6, cudaArrayCubemap);

    sample2<<<1, N>>>(make_texture(of(a), cudaAddressModeClamp, cudaFilterModePoint, true), out,
                      0.5f, 0.5f, 1);
    got = back<float>(N);
    for (int i = 0; i < N; i++)
        check("2D", i, got[i], texel(i % W, i / W, 0), 0);
    sample3<<<1, N>>>(make_texture(of(cube), cudaAddressModeClamp, cudaFilterModePoint, false), out,
                      0.5f, 2);
    got = back<float>(N);
    for (int i = 0; i < N; i++)
        check("3D", i, got[i], texel(i % W, i / W, 2), 0);
    sample3<<<1, N>>>(make_texture(of(cube), cudaAddressModeClamp, cudaFilterModeLinear, false),
                      out, 1, 1);
    got = back<float>(N);
    for (int i = 0; i < N; i++) {
        double sum = 0;

        for (int k = 0; k < 8; k++) {
            const int x = i % W + k % 2, y = i / W + k / 2 % 2;

            sum += texel(x < W ? x : W - 1, y < H ? y : H - 1, 1 + k / 4);
        }
        check("3D, linear", i, got[i], sum / 8, 0.5);
    }
    for (int layer = 0; layer < D + 2; layer++) {
        layers<<<1, N>>>(make_texture(of(stack), cudaAddressModeClamp, cudaFilterModePoint, false),
                         out, layer);
        got = back<float>(N);
        for (int i = 0; i < N; i++)
            check("layer", i, got[i], texel(i % W, i / W, layer < D ? layer : D - 1), 0);
    }
    faces<<<1, 6>>>(make_texture(of(sky), cudaAddressModeClamp, cudaFilterModePoint, true), out);

    /* x and y of 16: (s + 1) / 2 and (t + 1) / 2 of the guide's table, for (0.1, 0.2, -0.1). */
    static const int want[6][2] = {{8, 6}, {7, 6}, {8, 7}, {8, 8}, {8, 6}, {7, 6}};

    got = back<float>(6);
    for (int i = 0; i < 6; i++)
        check("face", i, got[i], texel(want[i][0], want[i][1], i), 0);
}

static void
check_memory()
{
    cudaResourceDesc r = {};
    std::vector<unsigned char> data(4 * N);
    unsigned char *linear;
    void *pitched;
    size_t pitch;

    for (int i = 0; i < 4 * N; i++)
        data[i] = (unsigned char)(i * 5);
    MUST(cudaMalloc(&linear, 4 * N));
    MUST(cudaMemcpy(linear, data.data(), 4 * N, cudaMemcpyHostToDevice));
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = linear;
    r.res.linear.desc = cudaCreateChannelDesc<uchar4>();
    r.res.linear.sizeInBytes = 4 * 20;
    fetches<<<1, 32>>>(make_texture(r, cudaAddressModeClamp, cudaFilterModePoint, false), out);
    got = back<float>(32);
    for (int i = 0; i < 32; i++) {
        const unsigned char *p = &data[i < 4 || i >= 24 ? 0 : 4 * (i - 4)];
        const double want = p[0] + 256.0 * p[1] + 65536.0 * p[3];

        check("memory", i, got[i], i < 4 || i >= 24 ? 0 : want, 0);
    }
    MUST(cudaMallocPitch(&pitched, &pitch, 4 * W, H));
    MUST(cudaMemcpy2D(pitched, pitch, data.data(), 4 * W, 4 * W, H, cudaMemcpyHostToDevice));
    r = {};
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = pitched;
    r.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
    r.res.pitch2D.width = W;
    r.res.pitch2D.height = H;
    r.res.pitch2D.pitchInBytes = pitch;
    bytes<<<1, N>>>(make_texture(r, cudaAddressModeClamp, cudaFilterModeLinear, false, true),
                    (float4 *)out);
    quads = back<float4>(N);
    for (int i = 0; i < N; i++) {
        const float4 v = quads[i];

        check("pitched memory", i, v.x, data[4 * i] / 255.0, 1e-6);
        check("pitched memory", i, v.w, data[4 * i + 3] / 255.0, 1e-6);
    }
}

static void
check_gathers_and_levels()
{
    const cudaArray_t a = make_array(W, H, 0, cudaArrayTextureGather);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaResourceDesc r = {};

    gathers<<<1, N>>>(make_texture(of(a), cudaAddressModeClamp, cudaFilterModePoint, false),
                      (float4 *)out);
    quads = back<float4>(N);
    for (int i = 0; i < N; i++) {
        const int x = i % W, y = i / W, x1 = x + 1 < W ? x + 1 : x, y1 = y + 1 < H ? y + 1 : y;
        const float4 v = quads[i];

        check("gather", i, v.x, texel(x, y1, 0), 0);
        check("gather", i, v.y, texel(x1, y1, 0), 0);
        check("gather", i, v.z, texel(x1, y, 0), 0);
        check("gather", i, v.w, texel(x, y, 0), 0);
    }
    r.resType = cudaResourceTypeMipmappedArray;
    MUST(cudaMallocMipmappedArray(&r.res.mipmap.mipmap, &format, make_cudaExtent(4, 4, 0), 3));
    for (int i = 0; i < 3; i++) {
        const std::vector<float> data(16, (float)(100 * i * i));
        cudaArray_t level;

        MUST(cudaGetMipmappedArrayLevel(&level, r.res.mipmap.mipmap, i));
        MUST(cudaMemcpy2DToArray(level, 0, 0, data.data(), (4 >> i) * 4, (4 >> i) * 4, 4 >> i,
                                 cudaMemcpyHostToDevice));
    }

    cudaTextureDesc d = {};
    cudaTextureObject_t t;

    d.normalizedCoords = 1;
    d.mipmapFilterMode = cudaFilterModeLinear;
    d.maxMipmapLevelClamp = 10;
    MUST(cudaCreateTextureObject(&t, &r, &d, nullptr));
    levels<<<1, 8>>>(t, out);

    static const double want[8] = {0, 50, 100, 250, 400, 400, 400, 400};

    got = back<float>(8);
    for (int i = 0; i < 8; i++)
        check("level", i, got[i], want[i], 0);
}

static void
check_surfaces()
{
    const cudaArray_t a = make_array(W, H, 0, cudaArraySurfaceLoadStore);
    const cudaArray_t b = make_array(W, H, 0, cudaArraySurfaceLoadStore);
    const cudaResourceDesc ra = of(a), rb = of(b);
    cudaSurfaceObject_t from, to;

    MUST(cudaCreateSurfaceObject(&from, &ra));
    MUST(cudaCreateSurfaceObject(&to, &rb));
    turn<<<1, N>>>(from, to);
    sample2<<<1, N>>>(make_texture(of(b), cudaAddressModeClamp, cudaFilterModePoint, true), out,
                      0.5f, 0.5f, 1);
    got = back<float>(N);
    for (int i = 0; i < N; i++)
        check("surface", i, got[i], texel(W - 1 - i % W, i / W, 0) + 1, 0);
    MUST(cudaDestroySurfaceObject(from));
    MUST(cudaDestroySurfaceObject(to));
    MUST(cudaFreeArray(a));
    MUST(cudaFreeArray(b));
}

static void
check_chosen()
{
    const cudaArray_t a = make_array(W, H, 0, cudaArraySurfaceLoadStore);
    const cudaArray_t b = make_array(W, H, 0, cudaArraySurfaceLoadStore);
    const cudaArray_t g = make_array(W, H, 0, cudaArrayTextureGather);
    const cudaResourceDesc ra = of(a), rb = of(b);
    const cudaTextureObject_t all[5] = {
        make_texture(ra, cudaAddressModeClamp, cudaFilterModePoint, true),
        make_texture(of(g), cudaAddressModeClamp, cudaFilterModePoint, true),
        make_texture(of(make_array(W, H, D, 0)), cudaAddressModeClamp, cudaFilterModePoint, false),
        make_texture(of(make_array(W, H, D, cudaArrayLayered)), cudaAddressModeClamp,
                     cudaFilterModePoint, false),
        make_texture(of(g), cudaAddressModeClamp, cudaFilterModePoint, false)};
    cudaSurfaceObject_t surfaces[2], *s;
    cudaTextureObject_t *t;

    MUST(cudaCreateSurfaceObject(&surfaces[0], &ra));
    MUST(cudaCreateSurfaceObject(&surfaces[1], &rb));
    MUST(cudaMalloc(&t, sizeof all));
    MUST(cudaMalloc(&s, sizeof surfaces));
    MUST(cudaMemcpy(t, all, sizeof all, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(s, surfaces, sizeof surfaces, cudaMemcpyHostToDevice));
    chosen<<<1, N>>>(t, s, (float4 *)out);
    quads = back<float4>(N);
    for (int i = 0; i < N; i++) {
        const int x = i % W, y = i / W;

        check("chosen plane", i, quads[i].x, 65 * texel(x, y, 0), 0);
        check("chosen space", i, quads[i].y, texel(x, y, 2), 0);
        check("chosen layer", i, quads[i].z, texel(x, y, 3) + 64 * texel(x, y, 0), 0);
        check("chosen gather", i, quads[i].w, texel(x, y, 0), 0);
    }
    sample2<<<1, N>>>(make_texture(rb, cudaAddressModeClamp, cudaFilterModePoint, true), out, 0.5f,
                      0.5f, 1);
    got = back<float>(N);
    for (int i = 0; i < N; i++)
        check("chosen surface", i, got[i], texel(i % W, i / W, 0) + 1, 0);
}

int
main()
{
    MUST(cudaMalloc(&out, N * sizeof(float4)));
    check_lines();
    check_planes();
    check_memory();
    check_gathers_and_levels();
    check_surfaces();
    check_chosen();
    printf("%d checks\n", checks);
    return 0;
}
