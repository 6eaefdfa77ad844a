/* own.c -- a program that begins MPI itself, and ends it: tern works in it where MPI lets several threads call, and says so where it
 * does not.
 *
 *   mpirun -n N own multiple|serialized|single */
#include "dist/mpi.h"
#include "ranks.h"
#include <dlfcn.h>
#include <mpi.h>

/* By the program's own MPI. */
static int sum_of(int x)
{
    int sum = 0;
    CHECK(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "own sum");
    return sum;
}

static void work_beside(int ranks, bool beside)
{
    TERN_SCOPE {
        for (int i = 0; i < 50; i++) {
            tern_dist_work *work = NULL;
            tern_tensor *x = tern_full(TERN_SHAPE(1000), TERN_SCALAR(i), TERN_F32, "cpu");
            CHECK(tern_dist_all_reduce(x, &(tern_dist_options){.work = &work}) == TERN_OK, "sum");
            if (beside)
                CHECK(sum_of(i) == i * ranks, "own sum beside");
            CHECK(tern_dist_wait(work) == TERN_OK, "wait");
            CHECK(tern_item(tern_min(x)) == i * ranks && tern_item(tern_max(x)) == i * ranks,
                  "sum %d", i);
        }
    }
}

/* What the plugin says of an error is MPI's name of it, in one line, without addresses. */
static void explained(const tern_mpi *plugin, int error)
{
    char text[200], words[MPI_MAX_ERROR_STRING + 1];
    int length = 0;
    CHECK(error && MPI_Error_string(error, words, &length) == MPI_SUCCESS, "an error");
    words[length] = '\0';
    plugin->explain(error, text, sizeof text);
    length = (int)strcspn(words, ",\n");
    CHECK(length > 5 && strncmp(text, words, (size_t)length) == 0, "'%s' is not '%s'", text, words);
    CHECK(!strchr(text, '\n') && !strstr(text, "0x"), "'%s'", text);
}

static void errors_are_named(void)
{
    void *library = dlopen(PLUGIN, RTLD_NOW);
    tern_mpi_plugin_function open = NULL;
    void *symbol = library ? dlsym(library, "tern_mpi_plugin") : NULL;
    MPI_Comm comm;
    int x = 0;
    CHECK(symbol, "%s", PLUGIN);
    memcpy(&open, &symbol, sizeof open);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    explained(open(), MPI_ERR_OTHER);
    explained(open(), MPI_ERR_COUNT);
    explained(open(), MPI_Send(&x, 1, MPI_INT, 999, 0, comm));
    explained(open(), MPI_Bcast(&x, -1, MPI_INT, 0, comm));
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    const bool multiple = argc > 1 && strcmp(argv[1], "multiple") == 0,
               single = argc > 1 && strcmp(argv[1], "single") == 0;
    int level = 0, ranks = 0, ended = 1;
    leave_pid();
    MPI_Init_thread(&argc, &argv,
                    single     ? MPI_THREAD_SINGLE
                    : multiple ? MPI_THREAD_MULTIPLE
                               : MPI_THREAD_SERIALIZED,
                    &level);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    errors_are_named();
    const tern_status status =
        tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = 30});
    if (level < MPI_THREAD_SERIALIZED) {
        CHECK(status == TERN_ERR_UNSUPPORTED && strstr(tern_last_error(), "MPI_THREAD_MULTIPLE"),
              "refused");
        tern_clear_error();
    } else {
        CHECK(status == TERN_OK && tern_dist_get_world_size(NULL) == ranks, "joined");
        work_beside(ranks, level >= MPI_THREAD_MULTIPLE);
        CHECK(tern_dist_destroy_process_group() == TERN_OK, "left");
    }
    CHECK(level >= MPI_THREAD_SERIALIZED || single, "level %d", level);
    MPI_Finalized(&ended);
    CHECK(!ended && sum_of(1) == ranks, "MPI is the program's still");
    MPI_Finalize();
    return 0;
}
