/* os.h -- the functions of the operating system that the library uses. Names and results are
 * POSIX's, text is UTF-8, paths have slashes, files are binary, and child processes inherit no
 * opened file. os_posix.c or os_windows.c defines the functions that are no macros. */
#ifndef TERN_BASE_OS_H
#define TERN_BASE_OS_H
#include "base/lock.h"
#include <stddef.h>
#include <stdio.h>
#include <tern/error.h>

#ifdef _WIN32
#include "base/os_windows.h"
#else
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <locale.h>
#include <sched.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#define tern_os_stat                   stat
#define tern_os_dirent                 dirent
#define tern_os_fopen                  fopen
#define tern_os_fdopen                 fdopen
#define tern_os_fileno                 fileno
#define tern_os_open                   open
#define tern_os_openat                 openat
#define tern_os_close                  close
#define tern_os_lseek                  lseek
#define tern_os_read                   read
#define tern_os_write                  write
#define tern_os_pread                  pread
#define tern_os_pwrite                 pwrite
#define tern_os_fsync                  fsync
#define tern_os_mkdir                  mkdir
#define tern_os_fstat                  fstat
#define tern_os_fstatat                fstatat
#define tern_os_lstat                  lstat
#define tern_os_access                 access
#define tern_os_faccessat              faccessat
#define tern_os_unlink                 unlink
#define tern_os_unlinkat               unlinkat
#define tern_os_rmdir                  rmdir
#define tern_os_rename                 rename
#define tern_os_renameat               renameat
#define tern_os_link                   link
#define tern_os_readlink               readlink
#define tern_os_fchmod                 fchmod
#define tern_os_opendir                opendir
#define tern_os_readdir                readdir
#define tern_os_closedir               closedir
#define tern_os_fdopendir              fdopendir
#define tern_os_dirfd                  dirfd
#define tern_os_mkstemp                mkstemp
#define tern_os_mkdtemp                mkdtemp
#define tern_os_isatty                 isatty
#define tern_os_getpid                 getpid
#define tern_os_gethostname            gethostname
#define tern_os_strcasecmp             strcasecmp
#define tern_os_strncasecmp            strncasecmp
#define tern_os_strtok_r               strtok_r
#define tern_os_strndup                strndup
#define tern_os_getline                getline
#define tern_os_getenv                 getenv
#define tern_os_setenv                 setenv
#define tern_os_unsetenv               unsetenv
#define tern_os_sched_yield            sched_yield
#define tern_os_strcasestr             strcasestr
#define tern_os_memmem                 memmem
typedef DIR tern_os_dir;
#define tern_os_matches(PATTERN, TEXT) (fnmatch(PATTERN, TEXT, 0) == 0)
/* Replaces backslashes in a program's path by slashes, in place; NULL is fine. */
#define tern_os_plain_path(PATH)       (PATH)
/* Returns the slash before the last name of a program's path, or NULL. */
#define tern_os_last_slash(PATH)       strrchr(PATH, '/')
/* Characters that the name of a file in a folder cannot have. */
#define TERN_OS_NO_NAME                "/"
#endif

/* ---- text ------------------------------------------------------------------------------------ */

/* strtod with the "C" locale instead of the program's. */
double tern_os_strtod(const char *text, char **end);
/* snprintf of one double with the "C" locale. */
int tern_os_print_real(char *text, size_t bytes, const char *format, double value)
    TERN_PRINTF_(3, 0);

/* Set the "C" locale for this thread, and restore the locale that was set before. */
#ifdef _WIN32
typedef struct tern_os_locale {
    int way;
    char name[64];
} tern_os_locale;
#else
typedef locale_t tern_os_locale;
#endif
tern_os_locale tern_os_locale_enter(void);
void tern_os_locale_leave(tern_os_locale before);

/* A stream that writes to memory. tern_os_text_end closes the stream and returns the text, which
 * the caller frees with free(); NULL if memory ran out. */
typedef struct tern_os_text {
    FILE *stream; /* NULL: could not be opened */
    char *data;
    size_t bytes;
} tern_os_text;
FILE *tern_os_text_begin(tern_os_text *text);
char *tern_os_text_end(tern_os_text *text);

/* ---- time ------------------------------------------------------------------------------------ */

int64_t tern_os_now(void);  /* nanoseconds of a monotonic clock */
int64_t tern_os_date(void); /* nanoseconds since 1970 */
void tern_os_sleep(int64_t nanoseconds);

/* ---- threads --------------------------------------------------------------------------------- */

#ifdef _WIN32
typedef void *tern_os_thread; /* a handle */
#else
typedef pthread_t tern_os_thread;
#endif
/* Starts a thread with all signals blocked: they are for the program's threads. false: error. */
bool tern_os_thread_start(tern_os_thread *thread, void *(*run)(void *user), void *user);
void tern_os_thread_join(tern_os_thread thread);
/* Waits for the thread until that time of tern_os_now(), and joins it if it has ended. */
void tern_os_thread_join_until(tern_os_thread thread, int64_t until);
void tern_os_thread_detach(tern_os_thread thread);
/* Registers run for the end of the calling thread. Returns false if it will not be called. */
bool tern_os_at_thread_end(void (*run)(void));
void tern_os_forget_thread_end(void);
/* Lets sleeps of this thread end within a microsecond of their time, if the system can. */
void tern_os_nap_exactly(void);
/* Never returns. */
_Noreturn void tern_os_stay(void);

/* ---- the process and the machine ------------------------------------------------------------- */

/* Returns the number of this process's cores, and sets *which to a hash of the set; 0: unknown. */
int tern_os_own_cores(uint64_t *which);
int tern_os_cores(void);
void tern_os_memory(uint64_t *free_bytes, uint64_t *total);
/* Returns whether no process has that number. */
bool tern_os_process_is_gone(long pid);
/* Returns the limit of the process's address space in bytes; 0 if there is none. */
uint64_t tern_os_address_limit(void);
/* Registers a function that is called in each forked child. */
void tern_os_at_fork(void (*run)(void));
/* Returns whether the program or library at address is never unloaded, as libtern.so. */
bool tern_os_stays(const void *address);
/* Calls run when the main thread calls exit() or returns from main, before the functions of atexit,
 * if this is the main thread and the library at address is never unloaded. */
void tern_os_at_main_end(void (*run)(void), const void *address);
/* Does the same as atexit, also in a library. */
void tern_os_at_exit(void (*run)(void));
/* Returns the program's environment, which ends with NULL. */
char **tern_os_environment(void);
/* Runs the program words[0], found in PATH, without a shell; its output goes to the file `log`.
 * Returns its exit status; -1 if it is not found. */
int tern_os_run(const char *const words[], const char *log);
/* Returns the width of a terminal's window in columns; 80 if unknown. */
int tern_os_columns(FILE *terminal);

/* dlopen, or what replaces it. TERN_OS_APART: the library prefers its own symbols to those of other
 * libraries in the process; TERN_OS_LAZY: functions are resolved when they are first called.
 * Returns NULL after an error, with the loader's message in reason. */
typedef enum tern_os_binding { TERN_OS_NOW, TERN_OS_APART, TERN_OS_LAZY } tern_os_binding;
void *tern_os_library_open(const char *name, tern_os_binding how, char *reason, size_t bytes);
void *tern_os_library_symbol(void *library, const char *name);
void tern_os_library_close(void *library);
/* Writes the folder of the library or program that contains the address; "." if unknown. */
void tern_os_library_folder(const void *address, char *folder, size_t bytes);

/* ---- folders and files ----------------------------------------------------------------------- */

typedef enum tern_os_place { TERN_OS_CACHE, TERN_OS_CONFIG, TERN_OS_TEMPORARY } tern_os_place;
/* Writes the path of the user's folder for such files ($XDG_CACHE_HOME, ~/.cache, %LOCALAPPDATA%),
 * followed by `below`. Returns false if no variable names it, or if the path is too long. */
bool tern_os_folder(tern_os_place place, const char *below, char *path, size_t bytes);
/* Returns $HOME or %USERPROFILE%, or NULL. */
const char *tern_os_home(void);
/* Calls found(user, path) for each path that matches a pattern with `*`, in order. */
void tern_os_glob(const char *pattern, void (*found)(void *user, const char *path), void *user);
/* Returns whether only this user or the administrator can write to an open file, and sets *own to
 * whether one of them owns it. */
bool tern_os_is_private(const struct tern_os_stat *status, bool *own);
/* Returns a second descriptor of a file, which child processes do not inherit; -1: error. */
int tern_os_dup_private(int file);
/* Locks a byte of a file against its other openings, or unlocks it. false: it is locked already. */
bool tern_os_lock_byte(int file, int64_t at, bool locks);
/* Opens a file without a name in a folder; tern_os_link_nameless gives it one. Returns -1 with
 * errno ENOTSUP if the system has no such files. */
int tern_os_open_nameless(int folder);
int tern_os_link_nameless(int file, int folder, const char *name);
/* Allocates the file's disk space before it is written. */
int tern_os_reserve(int file, int64_t bytes);
/* Returns whether errno says that the disk is full. *free_bytes: the space that is left. */
bool tern_os_disk_is_full(int file, uint64_t *free_bytes);
/* Starts to write dirty pages of a file to the disk, without waiting. */
void tern_os_start_writing(int file, int64_t at, int64_t bytes);
/* Writes a folder's entries to the disk. Returns 0, or -1 with errno. */
int tern_os_sync_folder(int folder);

/* The allocator of host memory. aligned blocks are aligned to 64 bytes; tern_os_free frees both. */
#ifdef _WIN32
void *tern_os_alloc(size_t bytes);
void *tern_os_alloc_aligned(size_t bytes);
void *tern_os_realloc(void *block, size_t bytes);
void tern_os_free(void *block);
#else
#define tern_os_alloc                malloc
#define tern_os_alloc_aligned(BYTES) aligned_alloc(64, BYTES)
#define tern_os_realloc              realloc
#define tern_os_free                 free
#endif

/* Maps a file privately: changes do not reach the file. file -1: maps a range of addresses, of
 * which only the first page may be accessed. Returns NULL with errno after an error. */
void *tern_os_map(int file, size_t bytes);
void tern_os_unmap(void *map, size_t bytes);
/* Opens a file that is in no folder, in memory if the system supports that; -1 with errno. */
int tern_os_open_memory(void);
/* Advises the system to use large pages for memory that is about to be filled. */
void tern_os_wish_large_pages(void *memory, size_t bytes);

#endif
