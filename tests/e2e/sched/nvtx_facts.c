/* Compares core/nvtx_abi.h with NVIDIA's headers, and runs NVIDIA's own code in a program with the
 * same tool library with which heddle's code is tested. */
#include <nvtx3/nvToolsExt.h>
#include <stddef.h>

#include "core/nvtx_abi.h"

#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours)
#define SAME_FIELD(ours, o, theirs, t)                                            \
    _Static_assert(offsetof(struct ours, o) == offsetof(theirs, t) &&             \
                       sizeof(((struct ours *)0)->o) == sizeof(((theirs *)0)->t), \
                   #ours "." #o)

SAME(HED_NVTX_VERSION, NVTX_VERSION);
SAME(HED_NVTX_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(HED_NVTX_UNICODE, NVTX_MESSAGE_TYPE_UNICODE);
SAME(HED_NVTX_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(HED_NVTX_MARK_EX, NVTX_CBID_CORE_MarkEx);
SAME(HED_NVTX_MARK_A, NVTX_CBID_CORE_MarkA);
SAME(HED_NVTX_RANGE_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
SAME(HED_NVTX_RANGE_PUSH_W, NVTX_CBID_CORE_RangePushW);
SAME(HED_NVTX_DOMAIN_MARK_EX, NVTX_CBID_CORE2_DomainMarkEx);
SAME(HED_NVTX_DOMAIN_REGISTER_A, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(HED_NVTX_DOMAIN_REGISTER_W, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(HED_NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(HED_NVTX_TABLE_VERSION, NVTX_ETID_VERSIONINFO);
SAME(HED_NVTX_CORE, NVTX_CB_MODULE_CORE);
SAME(HED_NVTX_CUDA, NVTX_CB_MODULE_CUDA);
SAME(HED_NVTX_OPENCL, NVTX_CB_MODULE_OPENCL);
SAME(HED_NVTX_CUDART, NVTX_CB_MODULE_CUDART);
SAME(HED_NVTX_CORE2, NVTX_CB_MODULE_CORE2);
SAME(HED_NVTX_SYNC, NVTX_CB_MODULE_SYNC);
SAME(HED_NVTX_MODULES, NVTX_CB_MODULE_SIZE);
SAME(HED_NVTX_CORE_COUNT, NVTX_CBID_CORE_SIZE);
SAME(HED_NVTX_CUDA_COUNT, NVTX_CBID_CUDA_SIZE);
SAME(HED_NVTX_OPENCL_COUNT, NVTX_CBID_OPENCL_SIZE);
SAME(HED_NVTX_CUDART_COUNT, NVTX_CBID_CUDART_SIZE);
SAME(HED_NVTX_CORE2_COUNT, NVTX_CBID_CORE2_SIZE);
SAME(HED_NVTX_SYNC_COUNT, NVTX_CBID_SYNC_SIZE);
SAME(HED_NVTX_RANGE_PUSH_A, NVTX_CBID_CORE_RangePushA);
SAME(HED_NVTX_RANGE_POP, NVTX_CBID_CORE_RangePop);
SAME(HED_NVTX_DOMAIN_RANGE_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(HED_NVTX_DOMAIN_RANGE_POP, NVTX_CBID_CORE2_DomainRangePop);
SAME(HED_NVTX_DOMAIN_CREATE_A, NVTX_CBID_CORE2_DomainCreateA);

SAME(sizeof(struct hed_nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
SAME_FIELD(hed_nvtx_callbacks, size, NvtxExportTableCallbacks, struct_size);
SAME_FIELD(hed_nvtx_callbacks, get_functions, NvtxExportTableCallbacks, GetModuleFunctionTable);
SAME(sizeof(struct hed_nvtx_version), sizeof(NvtxExportTableVersionInfo));
SAME_FIELD(hed_nvtx_version, version, NvtxExportTableVersionInfo, version);
SAME_FIELD(hed_nvtx_version, set_library_version, NvtxExportTableVersionInfo,
           SetInjectionNvtxVersion);
SAME(sizeof(struct hed_nvtx_event), sizeof(nvtxEventAttributes_t));
SAME_FIELD(hed_nvtx_event, version, nvtxEventAttributes_t, version);
SAME_FIELD(hed_nvtx_event, size, nvtxEventAttributes_t, size);
SAME_FIELD(hed_nvtx_event, category, nvtxEventAttributes_t, category);
SAME_FIELD(hed_nvtx_event, color_type, nvtxEventAttributes_t, colorType);
SAME_FIELD(hed_nvtx_event, color, nvtxEventAttributes_t, color);
SAME_FIELD(hed_nvtx_event, payload_type, nvtxEventAttributes_t, payloadType);
SAME_FIELD(hed_nvtx_event, payload, nvtxEventAttributes_t, payload);
SAME_FIELD(hed_nvtx_event, message_type, nvtxEventAttributes_t, messageType);
SAME_FIELD(hed_nvtx_event, message, nvtxEventAttributes_t, message);

int
main(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("theirs");
    nvtxEventAttributes_t e = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .messageType = NVTX_MESSAGE_TYPE_ASCII,
    };

    e.message.ascii = "inner";
    (void)nvtxRangePushA("outer");
    (void)nvtxDomainRangePushEx(domain, &e);
    (void)nvtxDomainRangePop(domain);
    (void)nvtxRangePop();
    return 0;
}
