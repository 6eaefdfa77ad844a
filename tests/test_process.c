/* test_process.c -- states of a process that any machine has: no cpu device, the library loaded and
 * unloaded while threads live. */
#include "rerun.h"
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

/* ---- scenarios ----------------------------------------------------------------------------- */

static int no_cpu(void)
{
    tern_tensor *x = tern_zeros(TERN_SHAPE(2), TERN_F32, NULL);
    printf("%d %s|", x != NULL, tern_last_error());
    tern_clear_error();
    const char *device = tern_default_device();
    printf("%d %s|", device != NULL, tern_last_error());
    tern_clear_error();
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    setenv("TERN_OPENCL_VISIBLE_DEVICES", "", 1);
    tern_status status = tern_set_default_device("auto");
    printf("%s %s", tern_status_name(status), tern_last_error());
    return 0;
}

/* A thread that used a library which is unloaded before the thread ends. */
static pthread_barrier_t used, unloaded;

static void *use_and_wait(void *library)
{
    void (*use)(void);
    void *address = dlsym(library, "use_tern");
    memcpy(&use, &address, sizeof use);
    if (use)
        use();
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&unloaded);
    return use ? library : NULL;
}

static int unload_one(const char *path)
{
    pthread_t thread;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *result = NULL;
    if (!library) {
        printf("%s", dlerror());
        return 1;
    }
    pthread_barrier_init(&used, NULL, 2);
    pthread_barrier_init(&unloaded, NULL, 2);
    pthread_create(&thread, NULL, use_and_wait, library);
    pthread_barrier_wait(&used);
    dlclose(library);
    bool gone = !dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    pthread_barrier_wait(&unloaded);
    pthread_join(thread, &result);
    printf("used %d gone %d\n", result != NULL, gone);
    return 0;
}

static int unload(void)
{
    return unload_one(TERN_PLUGIN) || unload_one(TERN_PLUGIN_SHARED);
}

/* A plugin that is loaded and unloaded over and over: what one time takes more than the one before. */
static int reload(void)
{
    enum { TIMES = 9, FROM = 4 }; /* until then drivers and the C library grow */
    size_t taken[TIMES], threads[TIMES];
    int gone = 0, failed = 0;
    for (int i = 0; i < TIMES; i++) {
        int (*train)(const char *) = NULL;
        void *library = dlopen(TERN_PLUGIN, RTLD_NOW | RTLD_LOCAL);
        void *address = library ? dlsym(library, "train_on") : NULL;
        memcpy(&train, &address, sizeof train);
        failed += !train || train(getenv("DEVICE"));
        dlclose(library);
        gone += !dlopen(TERN_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
        taken[i] = mallinfo2().uordblks + mallinfo2().hblkhd;
        threads[i] = 0;
        DIR *tasks = opendir("/proc/self/task");
        while (tasks && readdir(tasks))
            threads[i]++;
        closedir(tasks);
    }
    printf("failed %d gone %d of %d bytes %ld threads %d", failed, gone, TIMES,
           ((long)taken[TIMES - 1] - (long)taken[FROM]) / (TIMES - 1 - FROM),
           (int)threads[TIMES - 1] - (int)threads[FROM]);
    return 0;
}

static const scenario scenarios[] = {{"reload", reload}, {"no_cpu", no_cpu}, {"unload", unload}};

/* ---- tests --------------------------------------------------------------------------------- */

static void no_instruction_set_is_an_error(void **state)
{
    (void)state;
    const char *output = RUN("no_cpu", "TERN_CPU_ISA=x86-64-v9", "TERN_DEVICE");
    const char *zeros = "0 tern_zeros: no cpu device for \"cpu\": this processor has none";
    assert_memory_equal(output, zeros, strlen(zeros));
    assert_non_null(strstr(output, "|0 tern_default_device: no cpu device"));
    assert_non_null(strstr(output, "|DEVICE tern_set_default_device: no cpu device"));
}

/* The library itself stays; in a module that it is linked into it goes. */
static void a_thread_outlives_the_library_that_it_used(void **state)
{
    (void)state;
    /* What the thread held in a module that is gone is lost. */
    const char *output = RUN("unload", "ASAN_OPTIONS=detect_leaks=0");
    assert_non_null(strstr(output, "used 1 gone "));
    assert_non_null(strstr(strchr(output, '\n'), "used 1 gone "));
}

/* All that the library took it gives back when the plugin goes; the C library and drivers keep some thousand bytes of each time,
 * a context alone has millions. */
static void a_plugin_that_is_unloaded_leaves_nothing(void **state)
{
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip(); /* they have an allocator of their own */
#endif
    static const char *const devices[] = {"DEVICE=cpu", "DEVICE=opencl:0"};
    for (int i = 0; i < 2; i++) {
        int failed, gone, times, threads;
        long bytes;
        if (!tern_device_is_available(devices[i] + 7))
            continue;
        const char *output = RUN("reload", devices[i], "TERN_COMPILE_THREADS=1");
        assert_int_equal(sscanf(output, "failed %d gone %d of %d bytes %ld threads %d", &failed,
                                &gone, &times, &bytes, &threads),
                         5);
        if (failed || gone != times || bytes > 8192 || threads > 0)
            fail_msg("%s: %s", devices[i], output);
    }
}

int main(int argc, char **argv)
{
    int code = rerun_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
    if (code >= 0)
        return code;
    const struct CMUnitTest tests[] = {
        TEST(no_instruction_set_is_an_error),
        TEST(a_thread_outlives_the_library_that_it_used),
        TEST(a_plugin_that_is_unloaded_leaves_nothing),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return failed;
}
