/* os_posix.c -- time, locks, threads, the process and the machine, with POSIX. */
#ifndef _WIN32
#define _GNU_SOURCE /* sched_getaffinity, dladdr1 */
#include "base/os.h"
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#ifdef __linux__
#include <link.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#ifdef __APPLE__
#include <mach/mach.h>
#include <sys/sysctl.h>
#endif

#ifdef __GLIBC__
#define TERN_GLIBC_HAS(MINOR) __GLIBC_PREREQ(2, MINOR)
#else
#define TERN_GLIBC_HAS(MINOR) 0
#endif

extern char **environ;

/* ---- text ------------------------------------------------------------------------------------ */

static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* If the "C" locale could not be created, the program's locale stays. */
tern_os_locale tern_os_locale_enter(void)
{
    static tern_once once = TERN_ONCE_INIT;
    tern_call_once(&once, make_c_locale);
    return uselocale(c_locale);
}

void tern_os_locale_leave(tern_os_locale before)
{
    uselocale(before);
}

double tern_os_strtod(const char *text, char **end)
{
    const tern_os_locale before = tern_os_locale_enter();
    const double value = strtod(text, end);
    tern_os_locale_leave(before);
    return value;
}

int tern_os_print_real(char *text, size_t bytes, const char *format, double value)
{
    const tern_os_locale before = tern_os_locale_enter();
    const int n = snprintf(text, bytes, format, value);
    tern_os_locale_leave(before);
    return n;
}

FILE *tern_os_text_begin(tern_os_text *text)
{
    *text = (tern_os_text){0};
    return text->stream = open_memstream(&text->data, &text->bytes);
}

char *tern_os_text_end(tern_os_text *text)
{
    if (text->stream && fclose(text->stream) == 0)
        return text->data;
    free(text->data);
    return text->data = NULL;
}

/* ---- time ------------------------------------------------------------------------------------ */

static int64_t read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct timespec timespec_of(int64_t nanoseconds)
{
    return (struct timespec){.tv_sec = (time_t)(nanoseconds / 1000000000),
                             .tv_nsec = (long)(nanoseconds % 1000000000)};
}

int64_t tern_os_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t tern_os_date(void)
{
    return read_clock(CLOCK_REALTIME);
}

void tern_os_sleep(int64_t nanoseconds)
{
    const struct timespec t = timespec_of(nanoseconds);
    nanosleep(&t, NULL);
}

/* ---- locks ----------------------------------------------------------------------------------- */

void tern_mutex_init_short(tern_mutex *mutex)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
#ifdef __GLIBC__
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    pthread_mutex_init(mutex, &kind);
    pthread_mutexattr_destroy(&kind);
}

#if TERN_GLIBC_HAS(30)

bool tern_cond_wait_until(tern_cond *cond, tern_mutex *mutex, int64_t until)
{
    const struct timespec t = timespec_of(until);
    return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &t) != ETIMEDOUT;
}

bool tern_mutex_lock_until(tern_mutex *mutex, int64_t until)
{
    const struct timespec t = timespec_of(until);
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &t) == 0;
}

#else

/* Uses the real-time clock, which may be set, for at most a second at once to limit the delay. */
bool tern_cond_wait_until(tern_cond *cond, tern_mutex *mutex, int64_t until)
{
    int64_t left = until - tern_os_now();
    if (left <= 0)
        return false;
    const struct timespec t = timespec_of(tern_os_date() + (left < 1000000000 ? left : 1000000000));
    pthread_cond_timedwait(cond, mutex, &t);
    return tern_os_now() < until;
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
#endif

/* ---- threads --------------------------------------------------------------------------------- */

/* The default stacks of musl and macOS are too small for kernel compilers. */
enum { LEAST_STACK = 8 << 20 };

bool tern_os_thread_start(tern_os_thread *thread, void *(*run)(void *user), void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
#ifdef __GLIBC__
    bool good = pthread_create(thread, NULL, run, user) == 0;
#else
    pthread_attr_t kind;
    bool good = pthread_attr_init(&kind) == 0;
    if (good) {
        pthread_attr_setstacksize(&kind, LEAST_STACK);
        good = pthread_create(thread, &kind, run, user) == 0;
        pthread_attr_destroy(&kind);
    }
#endif
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

void tern_os_thread_join(tern_os_thread thread)
{
    pthread_join(thread, NULL);
}

#if TERN_GLIBC_HAS(31)
void tern_os_thread_join_until(tern_os_thread thread, int64_t until)
{
    const struct timespec t = timespec_of(until);
    pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &t);
}
#elif defined(__linux__) && !defined(__BIONIC__)
void tern_os_thread_join_until(tern_os_thread thread, int64_t until)
{
    const struct timespec t = timespec_of(tern_os_date() + until - tern_os_now());
    pthread_timedjoin_np(thread, NULL, &t);
}
#else
void tern_os_thread_join_until(tern_os_thread thread, int64_t until)
{
    if (pthread_equal(thread, pthread_self()))
        return;
    while (pthread_kill(thread, 0) == 0) {
        if (tern_os_now() >= until)
            return;
        tern_os_sleep(1000000);
    }
    pthread_join(thread, NULL);
}
#endif

void tern_os_thread_detach(tern_os_thread thread)
{
    pthread_detach(thread);
}

/* Calls a function whose address was passed as the argument of a destructor. */
static void call_at_end(void *run)
{
    void (*function)(void);
    memcpy(&function, &run, sizeof function);
    function();
}

static struct {
    pthread_key_t key;
    tern_once once;
    bool is_made;
} thread_end = {.once = TERN_ONCE_INIT};

static void make_key(void)
{
    thread_end.is_made = pthread_key_create(&thread_end.key, call_at_end) == 0;
}

bool tern_os_at_thread_end(void (*run)(void))
{
    void *function;
    memcpy(&function, &run, sizeof function);
    tern_call_once(&thread_end.once, make_key);
    return thread_end.is_made && pthread_setspecific(thread_end.key, function) == 0;
}

void tern_os_forget_thread_end(void)
{
    if (thread_end.is_made)
        pthread_key_delete(thread_end.key);
}

void tern_os_nap_exactly(void)
{
#ifdef __linux__
    prctl(PR_SET_TIMERSLACK, 1000UL);
#endif
}

_Noreturn void tern_os_stay(void)
{
    for (;;)
        pause();
}

/* ---- the process and the machine ------------------------------------------------------------- */

int tern_os_cores(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int tern_os_own_cores(uint64_t *which)
{
    *which = 0;
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        const unsigned char *bytes = (const unsigned char *)&set;
        *which = 0xcbf29ce484222325;
        for (size_t i = 0; i < sizeof set; i++)
            *which = (*which ^ bytes[i]) * 0x100000001b3;
        return CPU_COUNT(&set);
    }
#endif
    return 0;
}

void tern_os_memory(uint64_t *free_bytes, uint64_t *total)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
#ifdef __APPLE__
    vm_statistics64_data_t pages;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    size_t bytes = sizeof *total;
    *free_bytes = *total = 0;
    sysctlbyname("hw.memsize", total, &bytes, NULL, 0);
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&pages, &n) == 0)
        *free_bytes = ((uint64_t)pages.free_count + pages.inactive_count) * page;
#else
    *free_bytes = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * page;
    *total = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
#endif
}

bool tern_os_process_is_gone(long pid)
{
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

uint64_t tern_os_address_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    return (uint64_t)limit.rlim_cur;
}

void tern_os_at_fork(void (*run)(void))
{
    pthread_atfork(NULL, NULL, run);
}

#ifdef __linux__
bool tern_os_stays(const void *address)
{
#ifdef __GLIBC__
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !map->l_name[0])
        return true;
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_FLAGS_1)
            return d->d_un.d_val & DF_1_NODELETE;
    return false;
#else /* musl never unloads a library */
    (void)address;
    return true;
#endif
}

extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *dso)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

/* Uses the destructor of a thread-local variable, which would keep a plugin loaded. */
void tern_os_at_main_end(void (*run)(void), const void *address)
{
    static atomic_bool watched;
    void *function;
    memcpy(&function, &run, sizeof function);
    if (__cxa_thread_atexit_impl && !atomic_load(&watched) && syscall(SYS_gettid) == getpid() &&
        tern_os_stays(address) && !atomic_exchange(&watched, true))
        __cxa_thread_atexit_impl(call_at_end, function, &__dso_handle);
}
#else
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
#endif

/* exit() in a forked child waits for ever for a lock of the C library if another thread was in
 * atexit during fork: so no thread of the library may be in atexit then. */
static tern_mutex at_exit_lock = TERN_MUTEX_INIT;

static void before_fork(void)
{
    tern_mutex_lock(&at_exit_lock);
}

static void after_fork(void)
{
    tern_mutex_unlock(&at_exit_lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

void tern_os_at_exit(void (*run)(void))
{
    static tern_once once = TERN_ONCE_INIT;
    tern_call_once(&once, watch_forks);
    tern_mutex_lock(&at_exit_lock);
    atexit(run);
    tern_mutex_unlock(&at_exit_lock);
}

char **tern_os_environment(void)
{
    return environ;
}

int tern_os_run(const char *const words[], const char *log)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    char **arguments;
    memcpy(&arguments, &words, sizeof arguments);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    int code = posix_spawnp(&child, words[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code != 0)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}

int tern_os_columns(FILE *terminal)
{
    struct winsize size = {0};
    return ioctl(fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void *tern_os_library_open(const char *name, tern_os_binding how, char *reason, size_t bytes)
{
    int flags = (how == TERN_OS_LAZY ? RTLD_LAZY : RTLD_NOW) | RTLD_LOCAL;
#ifdef RTLD_DEEPBIND
    /* A sanitizer aborts a process that uses RTLD_DEEPBIND. */
    if (how == TERN_OS_APART && !dlsym(RTLD_DEFAULT, "__sanitizer_print_stack_trace"))
        flags |= RTLD_DEEPBIND;
#endif
    void *library = dlopen(name, flags);
    const char *why = library ? "" : dlerror();
    snprintf(reason, bytes, "%s", why ? why : "unknown reason");
    return library;
}

void *tern_os_library_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

void tern_os_library_close(void *library)
{
    dlclose(library);
}

void tern_os_library_folder(const void *address, char *folder, size_t bytes)
{
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        info.dli_fname = "";
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(folder, bytes, "%.*s", slash ? (int)(slash - info.dli_fname) : 1,
             slash ? info.dli_fname : ".");
}

#else
typedef int tern_os_posix_is_empty;
#endif
