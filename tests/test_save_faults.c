/* test_save_faults.c -- system calls that fail while files are saved and loaded: a full disk, a broken one,
 * one that is read-only or over its quota, calls that do a part of what was asked.
 *
 * The functions below stand before libc's; each may fail at its n-th call. */
#define _GNU_SOURCE
#include "support.h"
#include "folder.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

/* ---- the calls ------------------------------------------------------------------------------- */

static struct {
    const char *function; /* NULL: none fails */
    int at, code, calls;
    bool goes_on; /* all calls from there on */
    bool halves;  /* reads and writes do half of what they are asked */
} fault;

static bool fails(const char *function)
{
    if (!fault.function || strcmp(function, fault.function) != 0)
        return false;
    fault.calls++;
    if (fault.calls != fault.at && !(fault.goes_on && fault.calls > fault.at))
        return false;
    errno = fault.code;
    return true;
}

static size_t part(size_t n)
{
    return fault.halves && n > 1 ? n / 2 : n;
}

ssize_t write(int fd, const void *data, size_t n)
{
    return fails("write") ? -1 : syscall(SYS_write, fd, data, part(n));
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    return fails("pwrite") ? -1 : syscall(SYS_pwrite64, fd, data, n, at);
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    return fails("pread") ? -1 : syscall(SYS_pread64, fd, to, part(n), at);
}

int fsync(int fd)
{
    return fails("fsync") ? -1 : (int)syscall(SYS_fsync, fd);
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
    return fails("fallocate") ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, n);
}

int renameat(int from, const char *old, int to, const char *new)
{
    return fails("renameat") ? -1 : (int)syscall(SYS_renameat, from, old, to, new);
}

int linkat(int from, const char *old, int to, const char *new, int flags)
{
    return fails("linkat") ? -1 : (int)syscall(SYS_linkat, from, old, to, new, flags);
}

int fchmod(int fd, mode_t mode)
{
    return fails("fchmod") ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

int openat(int at, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return fails("openat") ? -1 : (int)syscall(SYS_openat, at, name, flags, mode);
}

/* ---- saving ---------------------------------------------------------------------------------- */

static tern_state_dict *dict_of(double value)
{
    tern_state_dict *dict = tern_state_dict_new();
    TERN_SCOPE {
        tern_state_dict_set(
            dict, "x", tern_full(TERN_SHAPE(1 << 16), tern_scalar_real(value), TERN_F32, "cpu"));
        tern_state_dict_set(dict, "y",
                            tern_full(TERN_SHAPE(7), tern_scalar_real(value), TERN_F64, "cpu"));
    }
    return dict;
}

/* 0 for a file that can't be loaded. */
static double value_in(const char *path)
{
    double value = 0;
    TERN_SCOPE {
        tern_state_dict *dict = tern_load(path, NULL);
        if (dict)
            value = tern_item(tern_min(tern_state_dict_get(dict, "x")));
        tern_state_dict_free(dict);
    }
    tern_clear_error();
    return value;
}

typedef tern_status (*save_call)(const tern_state_dict *dict);

static tern_status save_file(const tern_state_dict *dict)
{
    return tern_save(dict, in_folder("f/x.safetensors"), NULL);
}
static tern_status save_shards(const tern_state_dict *dict)
{
    return tern_save(dict, in_folder("f"), &(tern_save_options){.max_shard_size = 100});
}
static tern_status save_npz(const tern_state_dict *dict)
{
    return tern_npz_save(dict, in_folder("f/x.npz"), NULL);
}

static const struct {
    const char *name, *path;
    save_call save;
    int files; /* that it makes */
} saves[] = {{"one file", "f/x.safetensors", save_file, 1},
             {"several files", "f", save_shards, 3},
             {"an archive", "f/x.npz", save_npz, 1}};

/* How many of them are tested: archives are read by libzip. */
static size_t saves_here(void)
{
    tern_state_dict *dict = dict_of(1);
    assert_int_equal(mkdir(in_folder("f"), 0777), 0);
    assert_ok(save_npz(dict));
    tern_state_dict *back = tern_load(in_folder("f/x.npz"), NULL);
    const bool archives = back || !test_no_library();
    tern_state_dict_free(back);
    remove_tree(in_folder("f"));
    tern_state_dict_free(dict);
    return sizeof saves / sizeof *saves - !archives;
}

static const struct {
    const char *function;
    int code;
} faults[] = {
    {"write", ENOSPC},     {"write", EIO},      {"write", EDQUOT},    {"write", EFBIG},
    {"pwrite", EIO},       {"fsync", EIO},      {"fsync", ENOSPC},    {"fsync", EDQUOT},
    {"fallocate", ENOSPC}, {"fallocate", EIO},  {"fallocate", EFBIG}, {"fallocate", EDQUOT},
    {"renameat", EIO},     {"renameat", EROFS}, {"renameat", ENOSPC}, {"linkat", ENOSPC},
    {"linkat", EROFS},     {"fchmod", EPERM},   {"openat", EROFS},    {"openat", EACCES},
    {"openat", EMFILE},
};

/* Each call of each function fails in turn. The old file is there or the new one, and nothing else. */
static void every_fault_leaves_one_of_both(void **state)
{
    (void)state;
    tern_state_dict *old = dict_of(1), *new = dict_of(2);
    for (size_t s = 0, n = saves_here(); s < n; s++)
        for (size_t f = 0; f < sizeof faults / sizeof *faults; f++)
            for (int at = 1, done = 0; !done; at++) {
                assert_int_equal(mkdir(in_folder("f"), 0777), 0);
                write_file(in_folder("f/the user's own"), "text", 4);
                assert_ok(saves[s].save(old));
                fault.function = faults[f].function;
                fault.code = faults[f].code;
                fault.at = at;
                fault.calls = 0;
                tern_status status = saves[s].save(new);
                done = fault.calls < at;
                fault.function = NULL;
                if (status != TERN_OK)
                    assert_error(TERN_ERR_IO, strerror(faults[f].code));
                double value = value_in(in_folder(saves[s].path));
                /* After the rename only the folder's own fsync is left: the new file is there. */
                if (value != 1 && value != 2)
                    fail_msg("%s, %s %d: %g is there", saves[s].name, faults[f].function, at,
                             value);
                if (status == TERN_OK)
                    assert_true(value == 2);
                int files = count_files(in_folder("f"));
                if (files != saves[s].files + 1 && (value == 1 || status == TERN_OK))
                    fail_msg("%s, %s %d: %d files", saves[s].name, faults[f].function, at, files);
                remove_tree(in_folder("f"));
            }
    tern_state_dict_free(old);
    tern_state_dict_free(new);
}

static void a_full_disk_says_how_much_is_missing(void **state)
{
    (void)state;
    tern_state_dict *dict = dict_of(1);
    fault.function = "fallocate";
    fault.code = ENOSPC;
    fault.at = 1;
    fault.calls = 0;
    assert_int_equal(tern_save(dict, in_folder("full.safetensors"), NULL), TERN_ERR_IO);
    fault.function = NULL;
    assert_error(TERN_ERR_IO, "bytes are needed");
    assert_int_equal(count_files(folder), 0);
    tern_state_dict_free(dict);
}

/* Interruptions, parts, and file systems that lack something are no errors. */
static void what_is_only_odd_succeeds(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        int code;
        bool goes_on, halves;
    } rows[] = {{"write", EINTR, false, false},
                {"fallocate", EINTR, false, false},
                {"fallocate", EOPNOTSUPP, true, false},
                {"pread", EINTR, false, false},
                {"none", 0, false, true},
                {"pwrite", EINTR, false, false}};
    tern_state_dict *dict = dict_of(3);
    for (size_t s = 0, n = saves_here(); s < n; s++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            assert_int_equal(mkdir(in_folder("f"), 0777), 0);
            fault.function = rows[i].function;
            fault.code = rows[i].code;
            fault.goes_on = rows[i].goes_on;
            fault.halves = rows[i].halves;
            fault.at = 1;
            fault.calls = 0;
            assert_ok(saves[s].save(dict));
            assert_true(value_in(in_folder(saves[s].path)) == 3);
            memset(&fault, 0, sizeof fault);
            remove_tree(in_folder("f"));
        }
    tern_state_dict_free(dict);
}

/* Where a file can't be without a name it has one for a while, which goes. */
static void a_file_with_a_name_does_too(void **state)
{
    (void)state;
    tern_state_dict *dict = dict_of(4);
    for (int at = 1; at < 4; at++) {
        fault.function = "openat";
        fault.code = EOPNOTSUPP;
        fault.at = 1;
        fault.calls = 0;
        assert_int_equal(mkdir(in_folder("f"), 0777), 0);
        assert_ok(save_file(dict));
        assert_true(fault.calls >= 2);
        fault.function = NULL;
        assert_true(value_in(in_folder("f/x.safetensors")) == 4);
        assert_int_equal(count_files(in_folder("f")), 1);
        remove_tree(in_folder("f"));
    }
    tern_state_dict_free(dict);
}

/* ---- loading --------------------------------------------------------------------------------- */

static void what_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    tern_state_dict *dict = dict_of(5);
    assert_ok(tern_save(dict, in_folder("read.safetensors"), NULL));
    for (int at = 1, done = 0; !done; at++) {
        fault.function = "pread";
        fault.code = EIO;
        fault.at = at;
        fault.calls = 0;
        tern_state_dict *back = tern_load(in_folder("read.safetensors"), NULL);
        done = fault.calls < at;
        fault.function = NULL;
        assert_true(!back == !done);
        if (!back)
            assert_error(TERN_ERR_IO, strerror(EIO));
        tern_state_dict_free(back);
    }
    tern_state_dict_free(dict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_full_disk_says_how_much_is_missing),
        TEST(every_fault_leaves_one_of_both),
        TEST(what_is_only_odd_succeeds),
        TEST(a_file_with_a_name_does_too),
        TEST(what_cannot_be_read_is_an_error),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
