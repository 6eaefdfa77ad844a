/* os_windows_process.c -- the process, the machine and libraries opened at run time, on Windows. */
#ifdef _WIN32
#include "base/os.h"
#include "base/os_wide.h"
#include <stdlib.h>

/* ---- the process and the machine ------------------------------------------------------------- */

int tern_os_cores(void)
{
    return (int)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
}

int tern_os_own_cores(uint64_t *which)
{
    DWORD_PTR own = 0, all = 0;
    GetProcessAffinityMask(GetCurrentProcess(), &own, &all);
    *which = own;
    /* For more than 64 cores, GetProcessAffinityMask reports one processor group only. */
    return own == all ? tern_os_cores() : __builtin_popcountll(own);
}

void tern_os_memory(uint64_t *free_bytes, uint64_t *total)
{
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    GlobalMemoryStatusEx(&status);
    *free_bytes = status.ullAvailPhys;
    *total = status.ullTotalPhys;
}

bool tern_os_process_is_gone(long pid)
{
    HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, (DWORD)pid);
    if (!process)
        return GetLastError() == ERROR_INVALID_PARAMETER;
    const bool gone = WaitForSingleObject(process, 0) == WAIT_OBJECT_0;
    CloseHandle(process);
    return gone;
}

uint64_t tern_os_address_limit(void)
{
    return 0;
}

void tern_os_at_fork(void (*run)(void))
{
    (void)run;
}

bool tern_os_stays(const void *address)
{
    (void)address;
    return true;
}

void tern_os_at_main_end(void (*run)(void), const void *address)
{
    (void)run;
    (void)address;
}

/* Registers run with the program's C library: functions that a DLL registers with atexit run after
 * other threads were killed while they held locks. The DLL is pinned, so that it stays loaded. */
void tern_os_at_exit(void (*run)(void))
{
    static const wchar_t *const libraries[] = {L"ucrtbase.dll", L"msvcrt.dll"};
    static const char *const names[] = {"_crt_atexit", "_onexit"};
    static const char here = 0;
    HMODULE self;
    GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                       (LPCWSTR)&here, &self);
#ifdef _UCRT
    const int which = 0;
#else
    const int which = 1;
#endif
    HMODULE library = GetModuleHandleW(libraries[which]);
    FARPROC found = library ? GetProcAddress(library, names[which]) : NULL;
    void *(*add)(void (*)(void));
    if (!found)
        return;
    memcpy(&add, &found, sizeof add);
    add(run);
}

char **tern_os_environment(void)
{
    return _environ;
}

const char *tern_os_getenv(const char *name)
{
    enum { KEPT = 128 };
    static struct {
        tern_mutex lock;
        char *of[KEPT];
        int n;
    } values;
    wchar_t *wide = tern_os_widen(name);
    const wchar_t *value = wide ? _wgetenv(wide) : NULL;
    free(wide);
    char text[8192];
    if (!value || !tern_os_narrow(value, text, sizeof text))
        return NULL;
    const char *kept = NULL;
    tern_mutex_lock(&values.lock);
    for (int i = 0; i < values.n && !kept; i++)
        kept = strcmp(values.of[i], text) == 0 ? values.of[i] : NULL;
    if (!kept && values.n < KEPT && (values.of[values.n] = _strdup(text)))
        kept = values.of[values.n++];
    tern_mutex_unlock(&values.lock);
    return kept ? kept : getenv(name);
}

int tern_os_setenv(const char *name, const char *value, int overwrite)
{
    wchar_t *wide = tern_os_widen(name), *to = tern_os_widen(value);
    const bool is_wanted = wide && to && (overwrite || !_wgetenv(wide));
    const int code = is_wanted ? _wputenv_s(wide, to) : wide && to ? 0 : ENOMEM;
    free(wide);
    free(to);
    return code ? -1 : 0;
}

int tern_os_unsetenv(const char *name)
{
    return tern_os_setenv(name, "", 1);
}

long tern_os_getpid(void)
{
    return (long)GetCurrentProcessId();
}

int tern_os_gethostname(char *name, size_t bytes)
{
    wchar_t wide[256];
    DWORD n = 256;
    return GetComputerNameExW(ComputerNameDnsHostname, wide, &n) &&
                   tern_os_narrow(wide, name, bytes)
               ? 0
               : -1;
}

/* Appends a word to a command line as programs parse it: in quotes, with backslashes before a quote
 * doubled. */
static size_t add_word(char *line, size_t n, size_t bytes, const char *word)
{
    size_t slashes = 0;
    const size_t most = bytes - 3;
    if (n < most)
        line[n++] = '"';
    for (; *word && n + 2 * slashes + 2 < most; word++) {
        if (*word == '"')
            for (size_t i = 0; i <= slashes; i++)
                line[n++] = '\\';
        slashes = *word == '\\' ? slashes + 1 : 0;
        line[n++] = *word;
    }
    for (; slashes; slashes--)
        line[n++] = '\\';
    line[n++] = '"';
    line[n++] = ' ';
    line[n] = '\0';
    return n;
}

int tern_os_run(const char *const words[], const char *log)
{
    static const size_t most = 32000;
    char *line = malloc(most);
    size_t n = 0;
    DWORD status = 0;
    PROCESS_INFORMATION child;
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    for (int i = 0; line && words[i]; i++)
        n = add_word(line, n, most, words[i]);
    wchar_t *wide = line ? tern_os_widen(line) : NULL, *path = tern_os_widen(log);
    HANDLE to = path ? CreateFileW(path, GENERIC_WRITE, FILE_SHARE_READ, &inherited, CREATE_ALWAYS,
                                   FILE_ATTRIBUTE_NORMAL, NULL)
                     : INVALID_HANDLE_VALUE;
    STARTUPINFOW how = {.cb = sizeof how,
                        .dwFlags = STARTF_USESTDHANDLES,
                        .hStdInput = INVALID_HANDLE_VALUE,
                        .hStdOutput = to,
                        .hStdError = to};
    const bool started =
        wide && to != INVALID_HANDLE_VALUE &&
        CreateProcessW(NULL, wide, NULL, NULL, TRUE, CREATE_NO_WINDOW, NULL, NULL, &how, &child);
    if (started) {
        WaitForSingleObject(child.hProcess, INFINITE);
        GetExitCodeProcess(child.hProcess, &status);
        CloseHandle(child.hProcess);
        CloseHandle(child.hThread);
    }
    if (to != INVALID_HANDLE_VALUE)
        CloseHandle(to);
    free(line);
    free(wide);
    free(path);
    return started ? (int)status : -1;
}

int tern_os_columns(FILE *terminal)
{
    CONSOLE_SCREEN_BUFFER_INFO about;
    HANDLE handle = (HANDLE)_get_osfhandle(_fileno(terminal));
    return GetConsoleScreenBufferInfo(handle, &about)
               ? about.srWindow.Right - about.srWindow.Left + 1
               : 80;
}

/* ---- libraries ------------------------------------------------------------------------------- */

void *tern_os_library_open(const char *name, tern_os_binding how, char *reason, size_t bytes)
{
    (void)how; /* on Windows each library uses its own symbols */
    wchar_t *wide = tern_os_widen(name), text[256];
    DWORD before, code = ERROR_NOT_ENOUGH_MEMORY;
    HMODULE library = NULL;
    const bool is_path = strpbrk(name, "/\\") != NULL;
    for (wchar_t *c = wide; c && *c; c++)
        *c = *c == L'/' ? L'\\' : *c;
    SetThreadErrorMode(SEM_FAILCRITICALERRORS, &before); /* no window with an error message */
    if (wide &&
        !(library = LoadLibraryExW(wide, NULL, is_path ? LOAD_WITH_ALTERED_SEARCH_PATH : 0)))
        code = GetLastError();
    SetThreadErrorMode(before, NULL);
    free(wide);
    if (library) {
        snprintf(reason, bytes, "%s", "");
        return library;
    }
    char words[512] = "";
    const DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL,
                                   code, 0, text, 256, NULL);
    if (n == 0 || !tern_os_narrow(text, words, sizeof words))
        snprintf(words, sizeof words, "error %lu", code);
    words[strcspn(words, "\r\n")] = '\0';
    const bool absent =
        code == ERROR_MOD_NOT_FOUND || code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND;
    snprintf(reason, bytes, "%s: %s%s", name,
             absent ? "No such file, or none of one it needs: " : "", words);
    return NULL;
}

void *tern_os_library_symbol(void *library, const char *name)
{
    FARPROC found = GetProcAddress(library, name);
    void *address;
    memcpy(&address, &found, sizeof address);
    return address;
}

void tern_os_library_close(void *library)
{
    FreeLibrary(library);
}

void tern_os_library_folder(const void *address, char *folder, size_t bytes)
{
    wchar_t wide[2048];
    HMODULE library;
    snprintf(folder, bytes, ".");
    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            address, &library) ||
        !GetModuleFileNameW(library, wide, 2048))
        return;
    for (wchar_t *c = wide; *c; c++)
        *c = *c == L'\\' ? L'/' : *c;
    if (!tern_os_narrow(wide, folder, bytes))
        snprintf(folder, bytes, ".");
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
}

#else
typedef int tern_os_windows_process_is_empty;
#endif
