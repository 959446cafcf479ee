/* The contestant that is OpenCL on the processor (PoCL). HED_BENCH_KERNELS names the folder with
 * the kernels' source. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

#include "contestant.h"

enum { MAX_PLATFORMS = 8 };

static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem device_buffers[MAX_BUFFERS];

#define MUST(call)                                             \
    do {                                                       \
        const cl_int r_ = (call);                              \
                                                               \
        if (r_ != CL_SUCCESS) {                                \
            fprintf(stderr, "%s failed with %d\n", #call, r_); \
            exit(1);                                           \
        }                                                      \
    } while (0)

static cl_device_id
find_processor(void)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint count = 0;
    cl_device_id device;

    MUST(clGetPlatformIDs(MAX_PLATFORMS, platforms, &count));
    for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; i++) {
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, NULL) == CL_SUCCESS)
            return device;
    }
    fprintf(stderr, "OpenCL has no processor here\n");
    exit(1);
}

static void
build_kernel(cl_context context, cl_device_id device, const struct bench_case *c)
{
    const char *folder = getenv("HED_BENCH_KERNELS");
    char source[256], options[4096], log[16384];
    const char *text = source;
    cl_int r;

    snprintf(source, sizeof source, "#include \"%s.cl\"\n", c->file);
    snprintf(options, sizeof options, "-cl-std=CL1.2 -I %s", folder ? folder : ".");

    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &r);

    MUST(r);
    if (clBuildProgram(program, 1, &device, options, NULL, NULL) != CL_SUCCESS) {
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        fprintf(stderr, "%s\n", log);
        exit(1);
    }
    kernel = clCreateKernel(program, c->kernel, &r);
    MUST(r);
}

void
contestant_open(const struct bench_case *c, const struct job *job)
{
    cl_int r;
    cl_device_id device = find_processor();
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);

    MUST(r);
    queue = clCreateCommandQueue(context, device, 0, &r);
    MUST(r);
    for (int i = 0; i < job->buffer_count; i++) {
        const struct buffer *b = &job->buffers[i];

        device_buffers[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, b->bytes, NULL, &r);
        MUST(r);
        MUST(clEnqueueWriteBuffer(queue, device_buffers[i], CL_TRUE, 0, b->bytes, b->data, 0, NULL,
                                  NULL));
    }
    build_kernel(context, device, c);
    for (int i = 0; i < job->argument_count; i++) {
        const struct argument *a = &job->arguments[i];

        if (a->buffer >= 0)
            MUST(clSetKernelArg(kernel, (cl_uint)i, sizeof(cl_mem), &device_buffers[a->buffer]));
        else
            MUST(clSetKernelArg(kernel, (cl_uint)i, 4, &a->i));
    }
}

void
contestant_run(const struct job *job, int count)
{
    size_t threads[3], block[3];

    for (int i = 0; i < 3; i++) {
        block[i] = job->block[i];
        threads[i] = (size_t)job->grid[i] * job->block[i];
    }
    for (int i = 0; i < count; i++)
        MUST(clEnqueueNDRangeKernel(queue, kernel, 3, NULL, threads, block, 0, NULL, NULL));
    MUST(clFinish(queue));
}

void
contestant_fetch(struct job *job)
{
    for (int i = 0; i < job->buffer_count; i++) {
        struct buffer *b = &job->buffers[i];

        if (b->is_output)
            MUST(clEnqueueReadBuffer(queue, device_buffers[i], CL_TRUE, 0, b->bytes, b->data, 0,
                                     NULL, NULL));
    }
}
