// clblast_parameter.cpp -- a parameter of a kernel, from CLBlast's C++ interface: only that tells.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <unordered_map>

extern "C" int64_t clblast_parameter(void *device, const char *kernel, int precision,
                                     const char *name);

// -1 where CLBlast or the kernel is not there.
int64_t clblast_parameter(void *device, const char *kernel, int precision, const char *name)
{
    using parameters = std::unordered_map<std::string, std::size_t>;
    using retrieve = int (*)(cl_device_id, const std::string &, int, parameters &);
    static const char symbol[] =
        "_ZN7clblast18RetrieveParametersEP13_cl_device_idRKNSt7__cxx1112basic_stringIcSt11char_"
        "traitsIcESaIcEEENS_9PrecisionERSt13unordered_mapIS7_mSt4hashIS7_ESt8equal_toIS7_"
        "ESaISt4pair"
        "IS8_mEEE";
    void *library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
    void *address = library ? dlsym(library, symbol) : nullptr;
    retrieve call;
    std::memcpy(&call, &address, sizeof call);
    parameters found;
    if (!address || call(static_cast<cl_device_id>(device), kernel, precision, found) != 0)
        return -1;
    auto at = found.find(name);
    return at == found.end() ? -1 : static_cast<int64_t>(at->second);
}
