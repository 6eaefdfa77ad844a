/* os.h -- what the library asks of the operating system: names and results are POSIX's, text is
 * UTF-8, paths have slashes, files are bytes, and no child of the process inherits what is opened.
 * os_posix.c or os_windows.c has the rest. */
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
/* A program's path gets slashes, in place; NULL is fine. */
#define tern_os_plain_path(PATH)       (PATH)
/* The slash before the last name of a program's path; NULL where there is none. */
#define tern_os_last_slash(PATH)       strrchr(PATH, '/')
/* What the name of a file in a folder has none of. */
#define TERN_OS_NO_NAME                "/"
#endif

/* ---- text ------------------------------------------------------------------------------------ */

/* strtod of the "C" locale, whatever the program's. */
double tern_os_strtod(const char *text, char **end);
/* snprintf of one number, a double, in that locale. */
int tern_os_print_real(char *text, size_t bytes, const char *format, double value)
    TERN_PRINTF_(3, 0);

/* That locale for all that the thread does in between. */
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

/* A stream that is written to memory. tern_os_text_end closes it and gives the text, to be freed
 * with free(); NULL where there was no memory. */
typedef struct tern_os_text {
    FILE *stream; /* NULL: it could not be opened */
    char *data;
    size_t bytes;
} tern_os_text;
FILE *tern_os_text_begin(tern_os_text *text);
char *tern_os_text_end(tern_os_text *text);

/* ---- time ------------------------------------------------------------------------------------ */

int64_t tern_os_now(void);  /* nanoseconds of a clock that nobody sets */
int64_t tern_os_date(void); /* nanoseconds since 1970, by the clock on the wall */
void tern_os_sleep(int64_t nanoseconds);

/* ---- threads --------------------------------------------------------------------------------- */

#ifdef _WIN32
typedef void *tern_os_thread; /* its handle */
#else
typedef pthread_t tern_os_thread;
#endif
/* Signals are for the program's threads: these take none. False where none could be started. */
bool tern_os_thread_start(tern_os_thread *thread, void *(*run)(void *user), void *user);
void tern_os_thread_join(tern_os_thread thread);
/* Joins it if it ends before that time of tern_os_now(). */
void tern_os_thread_join_until(tern_os_thread thread, int64_t until);
void tern_os_thread_detach(tern_os_thread thread);
/* Has a function called at the end of each thread for which it was asked. False: it won't be. */
bool tern_os_at_thread_end(void (*run)(void));
void tern_os_forget_thread_end(void);
/* Naps of this thread end within a microsecond of their time, where the system can. */
void tern_os_nap_exactly(void);
/* Waits for ever. */
_Noreturn void tern_os_stay(void);

/* ---- the process and the machine ------------------------------------------------------------- */

/* Cores that this process may use, and a hash of which these are; 0 where nobody says it. */
int tern_os_own_cores(uint64_t *which);
int tern_os_cores(void);
void tern_os_memory(uint64_t *free_bytes, uint64_t *total);
/* Whether no process has that number now. */
bool tern_os_process_is_gone(long pid);
/* The most bytes of addresses that the process may use; 0 without such a limit. */
uint64_t tern_os_address_limit(void);
/* Has a function called in each child that the process forks. */
void tern_os_at_fork(void (*run)(void));
/* Whether the library with that address is never unloaded: a program, or libtern.so. */
bool tern_os_stays(const void *address);
/* For the main thread, and a library that stays: has a function called when that thread calls
 * exit() or returns from main, before all that was registered with atexit. */
void tern_os_at_main_end(void (*run)(void), const void *address);
/* atexit, also from a library. */
void tern_os_at_exit(void (*run)(void));
/* The program's environment, NULL-ended. */
char **tern_os_environment(void);
/* Runs a program without a shell, by its name in PATH; what it prints goes to the file `log`. -1
 * where there is none of that name, else its exit status. */
int tern_os_run(const char *const words[], const char *log);
/* Columns of the window of a terminal; 80 where it does not say. */
int tern_os_columns(FILE *terminal);

/* dlopen, and what stands in its place. TERN_OS_APART: the library calls its own symbols, though
 * the process may have them from elsewhere; TERN_OS_LAZY: functions are looked for when they are
 * called. NULL, with the loader's words in reason. */
typedef enum tern_os_binding { TERN_OS_NOW, TERN_OS_APART, TERN_OS_LAZY } tern_os_binding;
void *tern_os_library_open(const char *name, tern_os_binding how, char *reason, size_t bytes);
void *tern_os_library_symbol(void *library, const char *name);
void tern_os_library_close(void *library);
/* The folder of the library, or program, that has this address; "." where that is unknown. */
void tern_os_library_folder(const void *address, char *folder, size_t bytes);

/* ---- folders and files ----------------------------------------------------------------------- */

typedef enum tern_os_place { TERN_OS_CACHE, TERN_OS_CONFIG, TERN_OS_TEMPORARY } tern_os_place;
/* The path of a folder where the user keeps such files ($XDG_CACHE_HOME, ~/.cache, %LOCALAPPDATA%)
 * with `below` behind it; false where nothing says it, or it is too long. */
bool tern_os_folder(tern_os_place place, const char *below, char *path, size_t bytes);
/* $HOME, or %USERPROFILE%; NULL. */
const char *tern_os_home(void);
/* A pattern with `*` in it: calls found(user, path) for each that is there, in order. */
void tern_os_glob(const char *pattern, void (*found)(void *user, const char *path), void *user);
/* Whether nobody but this user, or the machine's administrator, may change an open file. *own: it
 * is theirs. */
bool tern_os_is_private(const struct tern_os_stat *status, bool *own);
/* A second descriptor of an open file, which children do not inherit; -1. */
int tern_os_dup_private(int file);
/* Locks one byte of a file against other openings of it, or lets it go. It waits for nobody. */
bool tern_os_lock_byte(int file, int64_t at, bool locks);
/* An open file without a name in a folder, to be given one by tern_os_link_nameless; -1 and
 * ENOTSUP where the system has none. */
int tern_os_open_nameless(int folder);
int tern_os_link_nameless(int file, int folder, const char *name);
/* Takes a file's bytes of the disk before they are written. */
int tern_os_reserve(int file, int64_t bytes);
/* Whether errno says that the disk is full; *free_bytes: those that are left. */
bool tern_os_disk_is_full(int file, uint64_t *free_bytes);
/* Has the disk begin with bytes that were written, without waiting for them. */
void tern_os_start_writing(int file, int64_t at, int64_t bytes);
/* A folder's own entries; 0, or -1 and errno. */
int tern_os_sync_folder(int folder);

/* Blocks of memory, all of one kind; those that are aligned at a multiple of 64, and of one. */
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

/* A file's bytes as memory, whose changes the file does not see; of file -1 a range of addresses,
 * of which the first page alone may be touched. NULL and errno. */
void *tern_os_map(int file, size_t bytes);
void tern_os_unmap(void *map, size_t bytes);
/* A file that no folder lists, in memory where the system has that; -1 and errno. */
int tern_os_open_memory(void);
/* Wishes for large pages behind memory that is about to be filled. */
void tern_os_wish_large_pages(void *memory, size_t bytes);

#endif
