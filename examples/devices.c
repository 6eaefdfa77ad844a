/* devices.c -- a table of the devices of this machine, and why others are missing.
 *
 *   devices            all of them
 *   devices opencl:0   one, with all that is known */
#include <stdio.h>
#include <tern/tern.h>

static const char *type_name(tern_device_type type)
{
    static const char *const names[] = {"?", "cpu", "gpu", "accelerator"};
    return type <= TERN_DEVICE_ACCELERATOR ? names[type] : names[0];
}

static double gib(uint64_t bytes)
{
    return (double)bytes / (1024.0 * 1024 * 1024);
}

static void print_row(const char *device)
{
    tern_device_info d;
    if (tern_device_get_info(device, &d) != TERN_OK) {
        printf("%-10s %s\n", device, tern_last_error());
        tern_clear_error();
        return;
    }
    printf("%-10s %-11s %5d %8.1f  %-3s %-3s %-5s %-6s  %s (%s)\n", d.device, type_name(d.type),
           d.compute_units, gib(d.memory_total), d.has_f64 ? "yes" : "no",
           d.has_native_f16 ? "yes" : "no", d.exact ? "yes" : "no",
           d.unified_memory ? "host" : "own", d.name, d.platform);
}

static int print_all(void)
{
    static const char *const kinds[] = {"cpu", "opencl", "cuda"};
    printf("%-10s %-11s %5s %8s  %-3s %-3s %-5s %-6s  %s\n", "device", "type", "units", "GiB",
           "f64", "f16", "exact", "memory", "name (platform)");
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < tern_device_count(kinds[k]); i++) {
            char device[32];
            snprintf(device, sizeof device, k ? "%s:%d" : "%s", kinds[k], i);
            print_row(device);
        }
    for (int k = 0; k < 3; k++)
        if (*tern_device_notes(kinds[k]))
            printf("\n%s: %s\n", kinds[k], tern_device_notes(kinds[k]));
    printf("\n\"auto\" is %s here.\n", tern_device_canonical("auto"));
    return 0;
}

static int print_one(const char *device)
{
    tern_device_info d;
    if (tern_device_get_info(device, &d) != TERN_OK) {
        fprintf(stderr, "devices: %s\n", tern_last_error());
        return 1;
    }
    printf("device              %s\nname                %s\n", d.device, d.name);
    printf("vendor              %s\nplatform            %s\n", d.vendor, d.platform);
    printf("driver              %s\ntype                %s\n", d.driver, type_name(d.type));
    printf("compute units       %d\nmemory              %.1f GiB, %.1f free\n", d.compute_units,
           gib(d.memory_total), gib(d.memory_free));
    if (*d.uuid)
        printf("uuid                %s\n", d.uuid);
    if (d.capability_major)
        printf("compute capability  %d.%d\n", d.capability_major, d.capability_minor);
    if (d.largest_allocation)
        printf("largest allocation  %.1f GiB\n", gib(d.largest_allocation));
    printf("float64             %s\nfloat16 arithmetic  %s (storage works everywhere)\n",
           d.has_f64 ? "yes" : "no", d.has_native_f16 ? "yes" : "no");
    printf("memory is           %s\n", d.unified_memory ? "the host's" : "its own");
    printf("elementwise         %s\n",
           d.exact ? "the same bits as on the cpu" : "within a few units in the last place");
    return 0;
}

int main(int argc, char **argv)
{
    return argc > 1 ? print_one(argv[1]) : print_all();
}
