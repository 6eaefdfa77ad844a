/* vendors.c -- checks the drivers in the loader's folder, or in its key of Windows' registry: a
 * loader skips broken drivers silently, and the user then wonders where the device is. */
#include "device/opencl/opencl.h"
#include "base/dynlib.h"
#include "base/os.h"
#include "base/os_registry.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Notes what is wrong with the driver that `where` lists. Returns whether the driver is installed,
 * even if it is broken. */
static bool note_driver(tern_text *notes, const char *where, const char *name)
{
    char why[512];
    void *library = tern_os_library_open(name, TERN_OS_LAZY, why, sizeof why);
    if (!library) {
        tern_text_add(notes, "%s%s: its driver cannot be loaded (%s)", notes->length ? "; " : "",
                      where, why);
        return !tern_dynlib_is_absent(why);
    }
    bool is_driver = tern_dynlib_symbol(library, "clGetExtensionFunctionAddress") ||
                     tern_dynlib_symbol(library, "clIcdGetPlatformIDsKHR");
    if (!is_driver)
        tern_text_add(notes, "%s%s: %s is not an OpenCL driver", notes->length ? "; " : "", where,
                      name);
    tern_dynlib_close(library);
    return is_driver;
}

#ifdef _WIN32
#define KEY "SOFTWARE\\Khronos\\OpenCL\\Vendors"

struct noted {
    tern_text *notes;
    bool installed;
};

static void note_registered(void *user, const char *name)
{
    struct noted *noted = user;
    noted->installed =
        note_driver(noted->notes, "HKEY_LOCAL_MACHINE\\" KEY, name) || noted->installed;
}

/* Today's drivers are also listed with their adapters, where only the loader looks, so an empty key
 * is no fault. */
bool tern_cl_note_vendors(tern_text *notes)
{
    struct noted noted = {.notes = notes};
    tern_os_registered(KEY, note_registered, &noted);
    return noted.installed;
}
#elif defined __APPLE__
/* The framework contains its drivers. */
bool tern_cl_note_vendors(tern_text *notes)
{
    (void)notes;
    return true;
}
#else
enum { PATH_BYTES = 1024 };

/* Reads the library that an .icd file names in its first line. Returns false if there is none. */
static bool library_of(const char *path, char *library, size_t bytes)
{
    struct tern_os_stat status;
    if (tern_os_stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    FILE *f = tern_os_fopen(path, "re");
    bool read = f && fgets(library, (int)bytes, f);
    if (f)
        fclose(f);
    if (read)
        library[strcspn(library, "\r\n")] = '\0';
    return read && *library;
}

static bool note_file(tern_text *notes, const char *path)
{
    char name[PATH_BYTES];
    if (library_of(path, name, sizeof name))
        return note_driver(notes, path, name);
    tern_text_add(notes, "%s%s names no driver", notes->length ? "; " : "", path);
    return false;
}

bool tern_cl_note_vendors(tern_text *notes)
{
    const char *chosen = tern_os_getenv("OCL_ICD_VENDORS");
    const char *folder = chosen && *chosen ? chosen : "/etc/OpenCL/vendors";
    if (tern_ends_with(folder, ".icd")) {
        return note_file(notes, folder);
    }
    tern_os_dir *d = tern_os_opendir(folder);
    int drivers = 0;
    bool installed = false;
    for (struct tern_os_dirent *entry; d && (entry = tern_os_readdir(d));) {
        char path[PATH_BYTES];
        if (!tern_ends_with(entry->d_name, ".icd") ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= PATH_BYTES)
            continue;
        drivers++;
        installed = note_file(notes, path) || installed;
    }
    if (d)
        tern_os_closedir(d);
    if (drivers == 0)
        tern_text_add(notes, "%s%s lists no driver%s", notes->length ? "; " : "", folder,
                      chosen && *chosen ? " (the folder is OCL_ICD_VENDORS)" : "");
    return installed;
}
#endif
