/* os_windows.c -- time, locks, threads and memory on Windows. */
#ifdef _WIN32
#include "base/os.h"
#include "base/os_wide.h"
#include "base/thread.h"
#include <process.h>
#include <stdlib.h>

/* ---- time ------------------------------------------------------------------------------------ */

int64_t tern_os_now(void)
{
    static int64_t frequency;
    LARGE_INTEGER t;
    if (!frequency && QueryPerformanceFrequency(&t))
        frequency = t.QuadPart;
    QueryPerformanceCounter(&t);
    return t.QuadPart / frequency * 1000000000 + t.QuadPart % frequency * 1000000000 / frequency;
}

int64_t tern_os_date(void)
{
    FILETIME t;
    GetSystemTimeAsFileTime(&t);
    const int64_t since_1601 = (int64_t)((uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime);
    return (since_1601 - INT64_C(116444736000000000)) * 100;
}

/* Uses a high-resolution timer, because Sleep() has ticks of up to 16 milliseconds. */
void tern_os_sleep(int64_t nanoseconds)
{
    enum { HIGH_RESOLUTION = 2 };
    LARGE_INTEGER in = {.QuadPart = -(nanoseconds + 99) / 100};
    HANDLE timer = CreateWaitableTimerExW(NULL, NULL, HIGH_RESOLUTION, TIMER_ALL_ACCESS);
    if (timer && SetWaitableTimer(timer, &in, 0, NULL, NULL, FALSE))
        WaitForSingleObject(timer, INFINITE);
    else
        Sleep((DWORD)((nanoseconds + 999999) / 1000000));
    if (timer)
        CloseHandle(timer);
}

/* ---- locks ----------------------------------------------------------------------------------- */

#define LOCK(MUTEX)     ((PSRWLOCK) & (MUTEX)->lock)
#define CONDITION(COND) ((PCONDITION_VARIABLE) & (COND)->condition)

void tern_mutex_lock(tern_mutex *mutex)
{
    AcquireSRWLockExclusive(LOCK(mutex));
}

void tern_mutex_unlock(tern_mutex *mutex)
{
    ReleaseSRWLockExclusive(LOCK(mutex));
}

bool tern_mutex_trylock(tern_mutex *mutex)
{
    return TryAcquireSRWLockExclusive(LOCK(mutex));
}

bool tern_mutex_lock_until(tern_mutex *mutex, int64_t until)
{
    while (!tern_mutex_trylock(mutex)) {
        if (tern_os_now() >= until)
            return false;
        tern_os_sleep(100000);
    }
    return true;
}

void tern_cond_wait(tern_cond *cond, tern_mutex *mutex)
{
    SleepConditionVariableSRW(CONDITION(cond), LOCK(mutex), INFINITE, 0);
}

bool tern_cond_wait_until(tern_cond *cond, tern_mutex *mutex, int64_t until)
{
    const int64_t left = until - tern_os_now(), most = INT64_C(1000000000000);
    if (left <= 0)
        return false;
    const DWORD milliseconds = (DWORD)((left < most ? left : most) / 1000000 + 1);
    SleepConditionVariableSRW(CONDITION(cond), LOCK(mutex), milliseconds, 0);
    return tern_os_now() < until;
}

void tern_cond_signal(tern_cond *cond)
{
    WakeConditionVariable(CONDITION(cond));
}

void tern_cond_broadcast(tern_cond *cond)
{
    WakeAllConditionVariable(CONDITION(cond));
}

static BOOL CALLBACK run_once(PINIT_ONCE once, void *run, void **unused)
{
    (void)once;
    (void)unused;
    (*(void (**)(void))run)();
    return TRUE;
}

void tern_call_once(tern_once *once, void (*run)(void))
{
    InitOnceExecuteOnce((PINIT_ONCE)&once->state, run_once, &run, NULL);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { LEAST_STACK = 8 << 20 };

struct start {
    void *(*run)(void *user);
    void *user;
};

static unsigned __stdcall run_thread(void *user)
{
    const struct start s = *(struct start *)user;
    free(user);
    s.run(s.user);
    return 0;
}

bool tern_os_thread_start(tern_os_thread *thread, void *(*run)(void *user), void *user)
{
    struct start *s = malloc(sizeof *s);
    if (!s)
        return false;
    *s = (struct start){run, user};
    *thread = (void *)_beginthreadex(NULL, LEAST_STACK, run_thread, s,
                                     STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (!*thread)
        free(s);
    return *thread != NULL;
}

void tern_os_thread_join(tern_os_thread thread)
{
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}

void tern_os_thread_join_until(tern_os_thread thread, int64_t until)
{
    const int64_t left = until - tern_os_now();
    if (GetThreadId(thread) != GetCurrentThreadId())
        WaitForSingleObject(thread, left > 0 ? (DWORD)(left / 1000000 + 1) : 0);
}

void tern_os_thread_detach(tern_os_thread thread)
{
    CloseHandle(thread);
}

static struct {
    DWORD index, memory;
    tern_once once;
    void (*run)(void);
} thread_end = {.index = FLS_OUT_OF_INDEXES, .memory = TLS_OUT_OF_INDEXES, .once = TERN_ONCE_INIT};

/* of: the memory of the thread, or &thread_end if the thread has none, or NULL: FlsFree calls this
 * on one thread for all threads that have a value, and nothing may run then. */
static void WINAPI run_thread_end(void *of)
{
    if (of && thread_end.run)
        thread_end.run();
    if (of == &thread_end)
        return;
    if (of && of == TlsGetValue(thread_end.memory))
        TlsSetValue(thread_end.memory, NULL);
    free(of);
}

static void make_index(void)
{
    thread_end.index = FlsAlloc(run_thread_end);
    thread_end.memory = TlsAlloc();
}

bool tern_os_at_thread_end(void (*run)(void))
{
    thread_end.run = run;
    tern_call_once(&thread_end.once, make_index);
    void *memory = TlsGetValue(thread_end.memory);
    return thread_end.index != FLS_OUT_OF_INDEXES &&
           FlsSetValue(thread_end.index, memory ? memory : &thread_end);
}

static void *new_memory(size_t bytes)
{
    tern_call_once(&thread_end.once, make_index);
    void *memory = calloc(1, bytes);
    if (!memory || !TlsSetValue(thread_end.memory, memory))
        abort(); /* as a thread-local variable without memory would */
    if (thread_end.index != FLS_OUT_OF_INDEXES)
        FlsSetValue(thread_end.index, memory);
    return memory;
}

/* Returns the replacement of a thread-local variable, which exists until run_thread_end is done. */
void *tern_os_thread_memory(size_t bytes)
{
    const DWORD error = GetLastError(); /* TlsGetValue resets the error */
    void *memory = thread_end.memory == TLS_OUT_OF_INDEXES ? NULL : TlsGetValue(thread_end.memory);
    memory = memory ? memory : new_memory(bytes);
    SetLastError(error);
    return memory;
}

void tern_os_forget_thread_end(void)
{
    thread_end.run = NULL;
    if (thread_end.index != FLS_OUT_OF_INDEXES) {
        FlsSetValue(thread_end.index, NULL); /* not for this thread, which may continue */
        FlsFree(thread_end.index);
    }
    thread_end.index = FLS_OUT_OF_INDEXES;
}

void tern_os_nap_exactly(void)
{
}

_Noreturn void tern_os_stay(void)
{
    for (;;)
        Sleep(INFINITE);
}

void tern_os_sched_yield(void)
{
    SwitchToThread();
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *tern_os_alloc(size_t bytes)
{
    return _aligned_malloc(bytes, 64);
}

void *tern_os_alloc_aligned(size_t bytes)
{
    return _aligned_malloc(bytes, 64);
}

void *tern_os_realloc(void *block, size_t bytes)
{
    return _aligned_realloc(block, bytes, 64);
}

void tern_os_free(void *block)
{
    _aligned_free(block);
}

#else
typedef int tern_os_windows_is_empty;
#endif
