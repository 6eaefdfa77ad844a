/* nvtx.c -- copies a profiler's ranges to NVTX: NVIDIA's tools show them above the kernels.
 *
 * A tool names its library in the environment variable NVTX_INJECTION64_PATH. NVTX 3 is the
 * interface of that library: the program opens the library and passes it a function that returns
 * tables of pointers to function pointers, into which the library writes its own functions.
 * https://github.com/NVIDIA/NVTX; only RangePushA and RangePop are called here. */
#include "profile/nvtx.h"
#include "base/os.h"
#include "base/lock.h"
#include "base/dynlib.h"
#include <stdlib.h>
#include <string.h>

/* Indices of NVTX's modules and callbacks; a table has as many entries as the largest, CORE2. */
enum { MODULES = 7, PLACES = 16, CORE = 1, RANGE_PUSH_A = 9, RANGE_POP = 11 };
enum { TABLE_CALLBACKS = 1, TABLE_VERSION = 3, VERSION = 3 };

typedef void (*any_function)(void);
static any_function places[MODULES][PLACES];
static any_function *tables[MODULES][PLACES];

static int table_of_module(int module, any_function ***table, unsigned *size)
{
    bool there = module >= CORE && module < MODULES;
    if (table)
        *table = there ? tables[module] : NULL;
    if (size)
        *size = there ? PLACES : 0;
    return there;
}

static void set_tool_version(uint32_t version)
{
    (void)version;
}

static const void *table_of(uint32_t id)
{
    static const struct {
        size_t size;
        int (*table_of_module)(int, any_function ***, unsigned *);
    } callbacks = {sizeof callbacks, table_of_module};
    static const struct {
        size_t size;
        uint32_t version, reserved;
        void (*set_tool_version)(uint32_t);
    } version = {sizeof version, VERSION, 0, set_tool_version};
    return id == TABLE_CALLBACKS ? (const void *)&callbacks : id == TABLE_VERSION ? &version : NULL;
}

static void open_tool(void)
{
    const char *path = tern_os_getenv("NVTX_INJECTION64_PATH");
    char reason[256];
    int (*begin)(const void *(*)(uint32_t));
    void *library = path && *path ? tern_dynlib_open_path(path, reason, sizeof reason) : NULL;
    void *symbol = library ? tern_dynlib_symbol(library, "InitializeInjectionNvtx2") : NULL;
    if (!symbol)
        return;
    for (int m = 0; m < MODULES; m++)
        for (int i = 0; i < PLACES; i++)
            tables[m][i] = &places[m][i];
    memcpy(&begin, &symbol, sizeof begin);
    if (!begin(table_of) || !places[CORE][RANGE_POP])
        places[CORE][RANGE_PUSH_A] = NULL;
}

void tern_nvtx_open(void)
{
    static tern_once once = TERN_ONCE_INIT;
    tern_call_once(&once, open_tool);
}

void tern_nvtx_push(const char *name)
{
    any_function push = places[CORE][RANGE_PUSH_A];
    if (push)
        ((int (*)(const char *))push)(name);
}

void tern_nvtx_pop(void)
{
    if (places[CORE][RANGE_PUSH_A])
        ((int (*)(void))places[CORE][RANGE_POP])();
}
