/* devices.c -- tern devices: lists the devices, and why some are missing. */
#include "tool/tool.h"

static const char *const kinds[] = {"cpu", "opencl", "cuda"};
enum { KINDS = sizeof kinds / sizeof *kinds };
static const char *cards;
static const tool_option options[] = {
    {.name = "--cards",
     .value = "FOLDER",
     .help = "look for cards in FOLDER, not in /sys/bus/pci/devices",
     .text = &cards},
    {NULL},
};

static bool get(const char *device, tern_device_info *d)
{
    if (tern_device_get_info(device, d) == TERN_OK)
        return true;
    printf("%-10s cannot be opened: %s\n", device, tool_error());
    tern_clear_error();
    return false;
}

static int print_all(void)
{
    int broken = 0;
    printf("%-10s %-11s %5s %10s  %-3s %-3s %-5s %-6s  %s\n", "device", "type", "units", "memory",
           "f64", "f16", "exact", "memory", "name (platform)");
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < tern_device_count(kinds[k]); i++) {
            char device[32], memory[32];
            tern_device_info d;
            snprintf(device, sizeof device, k ? "%s:%d" : "%s", kinds[k], i);
            if (!get(device, &d)) {
                broken++;
                continue;
            }
            printf("%-10s %-11s %5d %10s  %-3s %-3s %-5s %-6s  %s (%s)\n", d.device,
                   tool_type_name(d.type), d.compute_units,
                   tool_bytes((double)d.memory_total, memory), d.has_f64 ? "yes" : "no",
                   d.has_native_f16 ? "yes" : "no", d.exact ? "yes" : "no",
                   d.unified_memory ? "host's" : "own", d.name, d.platform);
        }
    for (int k = 0; k < KINDS; k++) {
        const char *notes = tern_device_notes(kinds[k]);
        if (*notes)
            printf("\n%s: %s\n", kinds[k], notes);
        else if (tern_device_count(kinds[k]) == 0)
            printf("\n%s: there is no such device\n", kinds[k]);
    }
    tool_missing_drivers(cards ? cards : "/sys/bus/pci/devices", stdout);
    const char *best = tern_device_canonical("auto");
    printf("\n\"auto\" is %s here.\n", best ? best : tool_error());
    return broken ? TOOL_WRONG : TOOL_FINE;
}

static const char *verdict(int tried)
{
    return tried > 0 ? "right" : tried < 0 ? "wrong, not used" : "not tried yet";
}

static int print_one(const char *device)
{
    char total[32], part[32];
    tern_device_info d;
    if (tern_device_get_info(device, &d) != TERN_OK)
        return tool_fail_with_error();
    printf("device              %s\nname                %s\n", d.device, d.name);
    printf("vendor              %s\nplatform            %s\n", d.vendor, d.platform);
    printf("driver              %s\ntype                %s\n", d.driver, tool_type_name(d.type));
    printf("compute units       %d\nmemory              %s, %s free\n", d.compute_units,
           tool_bytes((double)d.memory_total, total), tool_bytes((double)d.memory_free, part));
    if (*d.uuid)
        printf("uuid                %s\n", d.uuid);
    if (d.capability_major)
        printf("compute capability  %d.%d\n", d.capability_major, d.capability_minor);
    if (d.largest_allocation)
        printf("largest allocation  %s\n", tool_bytes((double)d.largest_allocation, total));
    printf("float64             %s\nfloat16 arithmetic  %s (storage works everywhere)\n",
           d.has_f64 ? "yes" : "no", d.has_native_f16 ? "yes" : "no");
    if (*d.matrix_unit)
        printf("matrix unit         %s (float16: %s, bfloat16: %s)\n", d.matrix_unit,
               verdict(d.matrix_f16), verdict(d.matrix_bf16));
    printf("memory is           %s\n", d.unified_memory ? "the host's" : "its own");
    printf("elementwise         %s\n",
           d.exact ? "the same bits as on the cpu" : "within a few units in the last place");
    return TOOL_FINE;
}

static int run(const char *const *words, int n)
{
    return n ? print_one(words[0]) : print_all();
}

const tool_command tool_devices = {
    .name = "devices",
    .arguments = "[DEVICE]",
    .summary = "List this machine's devices, and what is missing for others",
    .more = "With a DEVICE (\"opencl:0\", \"opencl:pocl\", \"auto\") the command prints all that "
            "is known of it. For a\n"
            "card on the PCI bus that has no driver it says what to install. The status is 1 if a "
            "device cannot\n"
            "be opened.\n",
    .part = TOOL_MACHINE,
    .device = true,
    .most = 1,
    .options = options,
    .run = run,
};
