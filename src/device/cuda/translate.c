/* translate.c -- a user's OpenCL C kernel as NVRTC takes it.
 *
 * Macros turn OpenCL's words into CUDA's. The one thing they can't do is local memory that a kernel
 * is given: CUDA has one block of it per launch. So the user's kernel becomes a function, and
 * around it comes a kernel that takes offsets into that block in place of pointers. */
#include "device/cuda/cuda.h"
#include <ctype.h>
#include <string.h>

enum { MOST_PARAMETERS = 64 };

static const char words[] =
    "typedef unsigned char uchar;\ntypedef unsigned short ushort;\ntypedef unsigned int uint;\n"
    "typedef unsigned long long ulong;\n#define long long long\n"
    "#define __kernel static __device__\n#define kernel static __device__\n"
    "#define __global\n#define global\n#define __constant const\n#define constant const\n"
    "#define __private\n#define __local __shared__\n#define local __shared__\n"
    "#define CLK_LOCAL_MEM_FENCE 1\n#define CLK_GLOBAL_MEM_FENCE 2\n"
    "#define barrier(flags) __syncthreads()\n"
    "#define mem_fence(flags) __threadfence_block()\n"
    "static __device__ size_t get_local_id(uint d) { return d == 0 ? threadIdx.x : d == 1 ? "
    "threadIdx.y : d == 2 ? threadIdx.z : 0; }\n"
    "static __device__ size_t get_group_id(uint d) { return d == 0 ? blockIdx.x : d == 1 ? "
    "blockIdx.y : d == 2 ? blockIdx.z : 0; }\n"
    "static __device__ size_t get_local_size(uint d) { return d == 0 ? blockDim.x : d == 1 ? "
    "blockDim.y : d == 2 ? blockDim.z : 1; }\n"
    "static __device__ size_t get_num_groups(uint d) { return d == 0 ? gridDim.x : d == 1 ? "
    "gridDim.y : d == 2 ? gridDim.z : 1; }\n"
    "static __device__ size_t get_global_id(uint d) { return get_group_id(d) * get_local_size(d) "
    "+ get_local_id(d); }\n"
    "static __device__ size_t get_global_size(uint d) { return get_num_groups(d) * "
    "get_local_size(d); }\n"
    "static __device__ size_t get_global_offset(uint) { return 0; }\n"
    "static __device__ float native_exp(float x) { return __expf(x); }\n"
    "static __device__ float native_log(float x) { return __logf(x); }\n"
    "static __device__ float mad(float a, float b, float c) { return a * b + c; }\n"
    "static __device__ float clamp(float x, float a, float b) { return fminf(fmaxf(x, a), b); }\n"
    "#define atomic_add atomicAdd\n#define atomic_inc(p) atomicAdd(p, 1)\n"
    "#define atomic_max atomicMax\n#define atomic_min atomicMin\n#define atomic_xchg atomicExch\n"
    "#define atomic_cmpxchg atomicCAS\n#define as_float(x) __int_as_float(x)\n"
    "#define as_int(x) __float_as_int(x)\n#define as_uint(x) __float_as_uint(x)\n"
    "#line 1 \"kernel\"\n";

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The word `name` at or after p, outside of comments and literals; NULL without one. */
static const char *find_word(const char *p, const char *name)
{
    size_t n = strlen(name);
    for (char before = ' '; *p; before = *p++) {
        if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*') {
            const char *end = strstr(p + 2, "*/");
            p = end ? end + 1 : p + strlen(p) - 1;
        } else if (!is_word(before) && strncmp(p, name, n) == 0 && !is_word(p[n])) {
            return p;
        }
        if (!*p)
            return NULL;
    }
    return NULL;
}

/* The kernel's definition: the parenthesis after its name, where a body follows. */
static const char *find_parameters(const char *source, const char *name)
{
    for (const char *p = source; (p = find_word(p, name)); p++) {
        const char *open = p + strlen(name);
        open += strspn(open, " \t\r\n");
        const char *close = *open == '(' ? strchr(open, ')') : NULL;
        if (close && close[1 + strspn(close + 1, " \t\r\n")] == '{')
            return open;
    }
    return NULL;
}

/* One parameter, without words of address spaces; true if it is local memory. */
static bool add_parameter(tern_text *text, const char *from, const char *end)
{
    static const char *const spaces[] = {"__local", "local", "__global", "global"};
    bool local = false;
    while (from < end) {
        size_t n = 0;
        while (from + n < end && is_word(from[n]))
            n++;
        bool space = false;
        for (int i = 0; i < 4 && n > 0; i++)
            if (strlen(spaces[i]) == n && memcmp(spaces[i], from, n) == 0) {
                space = true;
                local = local || i < 2;
            }
        n = n ? n : 1;
        if (!space)
            tern_text_add_bytes(text, from, n);
        from += n;
    }
    return local;
}

tern_status tern_cuda_translate(tern_text *text, const char *source, const char *name,
                                int *arguments, uint64_t *locals)
{
    const char *open = find_parameters(source, name), *at = open ? open + 1 : NULL;
    tern_text plain = {0}, outer = {0}, call = {0};
    *arguments = 0;
    *locals = 0;
    if (!open)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_kernel_compile: the source has no kernel called \"%s\"", name);
    const char *close = strchr(open, ')');
    bool empty = strspn(at, " \t\r\n") == (size_t)(close - at) ||
                 (find_word(at, "void") == at && at + 4 == close);
    for (int i = 0; !empty && at <= close && i < MOST_PARAMETERS; i++) {
        size_t n = strcspn(at, ",)");
        const char *comma = i ? ", " : "";
        tern_text one = {0};
        bool local = add_parameter(&one, at, at + n);
        tern_text_add(&plain, "%s%s", comma, one.data ? one.data : "");
        /* A parameter p<i> of the same type: the declared name is the last word. */
        size_t length = one.length;
        while (length > 0 && !is_word(one.data[length - 1]))
            length--;
        size_t end = length;
        while (length > 0 && is_word(one.data[length - 1]))
            length--;
        if (local)
            tern_text_add(&outer, "%sunsigned int p%d", comma, i);
        else
            tern_text_add(&outer, "%s%.*s p%d%s", comma, (int)length, one.data ? one.data : "", i,
                          one.data ? one.data + end : "");
        if (local)
            tern_text_add(&call, "%s(%.*s)(tern_shared + p%d)", comma, (int)length,
                          one.data ? one.data : "", i);
        else
            tern_text_add(&call, "%sp%d", comma, i);
        *locals |= local ? UINT64_C(1) << i : 0;
        *arguments = i + 1;
        outer.failed = outer.failed || one.failed;
        tern_text_free(&one);
        at += n + 1;
    }
    tern_text_add(text, "%s", words);
    tern_text_add_bytes(text, source, (size_t)(open + 1 - source));
    tern_text_add(text, "%s%s", plain.data ? plain.data : "", close);
    tern_text_add(text,
                  "\nextern __shared__ __align__(16) char tern_shared[];\n"
                  "extern \"C\" __global__ void tern_entry_%s(%s)\n{\n    %s(%s);\n}\n",
                  name, outer.data ? outer.data : "", name, call.data ? call.data : "");
    text->failed = text->failed || plain.failed || outer.failed || call.failed;
    tern_text_free(&plain);
    tern_text_free(&outer);
    tern_text_free(&call);
    return text->failed ? TERN_ERR_MEMORY : TERN_OK;
}
