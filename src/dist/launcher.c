/* launcher.c -- finds the launcher of this process by environment variables, and opens the plugin
 * for its MPI. */
#include "base/env.h"
#include "base/os.h"
#include "base/dynlib.h"
#include "dist/dist.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number(const char *variable, int otherwise)
{
    const char *text = variable ? tern_os_getenv(variable) : NULL;
    char *end;
    if (!text || !*text)
        return otherwise;
    long value = strtol(text, &end, 10);
    return *end || value < 0 || value > 1 << 30 ? otherwise : (int)value;
}

/* mpirun of Open MPI starts its own daemons by srun, so Slurm's variables are checked last.
 * SLURM_NTASKS is not used, since a batch script has it before srun starts any process. */
tern_dist_launcher tern_dist_find_launcher(void)
{
    static const struct {
        const char *size, *rank, *local_rank, *families[3];
    } known[] = {
        {"OMPI_COMM_WORLD_SIZE",
         "OMPI_COMM_WORLD_RANK",
         "OMPI_COMM_WORLD_LOCAL_RANK",
         {"openmpi", "abi"}},
        {"PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", {"abi", "mpich"}},
        {"MPI_LOCALNRANKS", "MPI_LOCALRANKID", "MPI_LOCALRANKID", {"abi", "mpich"}},
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", {"openmpi", "mpich", "abi"}},
        {NULL, "PMIX_RANK", NULL, {"openmpi", "mpich", "abi"}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const bool local = known[i].size && strcmp(known[i].size, "MPI_LOCALNRANKS") == 0;
        const int size = number(known[i].size, 0), rank = number(known[i].rank, -1);
        if (known[i].size ? size == 0 : rank < 0)
            continue;
        tern_dist_launcher l = {.variable = known[i].size ? known[i].size : known[i].rank,
                                .size = local ? 0 : size,
                                .rank = rank,
                                .local_rank = number(known[i].local_rank, -1),
                                .there = true};
        memcpy(l.families, known[i].families, sizeof l.families);
        return l;
    }
    return (tern_dist_launcher){
        .families = {"openmpi", "mpich", "abi"}, .rank = -1, .local_rank = -1};
}

static const tern_mpi *open_one(const char *path, char *where, size_t bytes)
{
    tern_mpi_plugin_function plugin = NULL;
    char reason[256];
    void *library = tern_dynlib_open_path(path, reason, sizeof reason);
    void *symbol = library ? tern_dynlib_symbol(library, "tern_mpi_plugin") : NULL;
    memcpy(&plugin, &symbol, sizeof plugin);
    const tern_mpi *mpi = plugin ? plugin() : NULL;
    if (mpi && mpi->version == TERN_MPI_VERSION) {
        snprintf(where, bytes, "%s", path);
        return mpi;
    }
    tern_dist_add(where, bytes, "%s%s%s", where[0] ? "; " : "", library ? path : reason,
                  !library ? ""
                  : !mpi   ? " is no plugin of tern's"
                           : " is a plugin for another version of tern");
    return NULL;
}

const tern_mpi *tern_dist_open_plugin(const char *const *families, char *where, size_t bytes)
{
    const char *own = tern_env(TERN_ENV_MPI_PLUGIN);
    const tern_mpi *mpi = NULL;
    char name[32], path[1024];
    where[0] = '\0';
    if (own)
        return open_one(own, where, bytes);
    for (int i = 0; i < 3 && families[i] && !mpi; i++) {
        snprintf(name, sizeof name, "mpi_%s", families[i]);
        if (tern_dynlib_beside(name, path, sizeof path))
            mpi = open_one(path, where, bytes);
        else
            tern_dist_add(where, bytes, "%s%s", where[0] ? "; " : "", path);
    }
    return mpi;
}
