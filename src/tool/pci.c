/* pci.c -- finds cards on the PCI bus that no driver offers as a device, and what to install for
 * them. */
#include "tool/tool.h"
#include "base/os.h"
#include <stdlib.h>
#include <string.h>

/* What to install for each vendor's cards; words: one of them occurs in the vendor or name of a
 * device. */
static const struct vendor {
    unsigned id;
    const char *name, *words[3], *install;
} vendors[] = {
    {0x10de,
     "NVIDIA",
     {"nvidia"},
     "NVIDIA's driver, with OpenCL and NVRTC (Debian: nvidia-driver, nvidia-opencl-icd, libcuda1, "
     "libnvrtc12; docs/cuda.md has the rest)"},
    {0x1002,
     "AMD",
     {"amd", "advanced micro", "radeon"},
     "Mesa's or ROCm's OpenCL driver (Debian: mesa-opencl-icd, and RUSTICL_ENABLE=radeonsi in the "
     "environment; or rocm-opencl-icd)"},
    {0x8086, "Intel", {"intel"}, "Intel's OpenCL driver (Debian: intel-opencl-icd)"},
    {0x5143, "Qualcomm", {"qualcomm", "adreno"}, "Mesa's OpenCL driver (Debian: mesa-opencl-icd)"},
};
enum { VENDORS = sizeof vendors / sizeof *vendors };

/* Returns the number in FOLDER/CARD/FILE, such as 0x10de; 0 if there is none. */
static unsigned number_in(const char *folder, const char *card, const char *file)
{
    char path[4200], text[32] = "";
    snprintf(path, sizeof path, "%s/%.64s/%s", folder, card, file);
    FILE *in = tern_os_fopen(path, "r");
    if (!in)
        return 0;
    if (!fgets(text, sizeof text, in))
        text[0] = '\0';
    fclose(in);
    return (unsigned)strtoul(text, NULL, 16);
}

static bool has_word(const char *text, const char *word)
{
    char small[256];
    size_t n = 0;
    for (; text[n] && n < sizeof small - 1; n++)
        small[n] = text[n] >= 'A' && text[n] <= 'Z' ? (char)(text[n] - 'A' + 'a') : text[n];
    small[n] = '\0';
    return strstr(small, word) != NULL;
}

/* Whether a device of this kind is a GPU or accelerator of the vendor. */
static bool shows(const char *kind, const struct vendor *v)
{
    for (int i = 0; i < tern_device_count(kind); i++) {
        char device[32];
        tern_device_info d;
        snprintf(device, sizeof device, "%s:%d", kind, i);
        if (tern_device_get_info(device, &d) != TERN_OK) {
            tern_clear_error();
            continue;
        }
        for (int w = 0; w < 3 && v->words[w] && d.type != TERN_DEVICE_CPU; w++)
            if (has_word(d.vendor, v->words[w]) || has_word(d.name, v->words[w]))
                return true;
    }
    return false;
}

int tool_missing_drivers(const char *folder, FILE *out)
{
    int found = 0;
    tern_os_dir *cards = tern_os_opendir(folder);
    for (struct tern_os_dirent *card; cards && (card = tern_os_readdir(cards));) {
        const unsigned class = number_in(folder, card->d_name, "class") >> 16;
        const unsigned id = number_in(folder, card->d_name, "vendor");
        if (class != 0x03 && class != 0x12) /* display controllers and accelerators */
            continue;
        for (int i = 0; i < VENDORS; i++) {
            const struct vendor *v = &vendors[i];
            if (v->id != id || shows("cuda", v) || shows("opencl", v))
                continue;
            fprintf(
                out,
                "\n%s %s card (%04x:%04x at %s) has no driver that tern can use.\nInstall %s.\n",
                strchr("AI", v->name[0]) ? "An" : "A", v->name, id,
                number_in(folder, card->d_name, "device"), card->d_name, v->install);
            found++;
        }
    }
    if (cards)
        tern_os_closedir(cards);
    return found;
}
