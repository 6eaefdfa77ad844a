/* select.c -- finds a device by its string: an index, part of a name, "auto", or a default. */
#include "base/env.h"
#include "base/thread.h"
#include "device/registry.h"
#include "device/suggest.h"
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool contains(const char *text, const char *part, size_t length)
{
    for (; text && *text; text++) {
        size_t i = 0;
        while (i < length && text[i] &&
               tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == length)
            return true;
    }
    return false;
}

static const char *kind_list(char *buffer, size_t bytes)
{
    buffer[0] = '\0';
    for (int k = 0; k < tern_registry_kinds(); k++) {
        size_t used = strlen(buffer);
        snprintf(buffer + used, bytes - used, "%s%s", k ? ", " : "", tern_registry_kind_name(k));
    }
    return buffer;
}

/* Records an error about a device string and returns NULL. The message also lists the devices and,
 * unless `device` is NULL, suggests one. While errors are held, nothing is listed, as that would
 * load drivers for a message that is not shown. */
static tern_place *refuse(const char *function, const char *device, const char *format, ...)
    TERN_PRINTF_(3, 4);
static tern_place *refuse(const char *function, const char *device, const char *format, ...)
{
    char reason[2048], there[1536] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (!tern_thread.error.held)
        tern_device_suggest(device, there, sizeof there);
    return tern_fail_null(TERN_ERR_DEVICE, "%s: %s%s", function, reason, there);
}

static tern_place *no_device(int kind, const char *device, const char *function)
{
    const char *notes = tern_registry_notes(kind);
    return refuse(function, NULL, "no %s device for \"%s\"%s%s", tern_registry_kind_name(kind),
                  device, *notes ? ": " : "", notes);
}

static tern_place *by_index(int kind, const char *digits, const char *device, const char *function)
{
    if (digits[0] == '0' && digits[1] != '\0')
        return refuse(function, device, "Invalid device string: '%s'", device);
    errno = 0;
    long long index = strtoll(digits, NULL, 10);
    if (errno == ERANGE || index > 32767)
        return refuse(function, device, "Could not parse device index '%s' in device string '%s'",
                      digits, device);
    int n = tern_registry_count(kind);
    if (strcmp(tern_registry_kind_name(kind), "cpu") == 0 && index > 0)
        return refuse(function, device,
                      "Invalid device string: '%s': there is one cpu device, \"cpu\"", device);
    if (n == 0)
        return no_device(kind, device, function);
    if (index >= n) {
        const char *notes = tern_registry_notes(kind);
        return refuse(function, device,
                      "device \"%s\" does not exist: there %s %d %s device%s%s%s%s", device,
                      n == 1 ? "is" : "are", n, tern_registry_kind_name(kind), n == 1 ? "" : "s",
                      *notes ? " (" : "", notes, *notes ? ")" : "");
    }
    return tern_registry_place(kind, index);
}

static tern_place *by_name_part(int kind, const char *part, const char *device,
                                const char *function)
{
    size_t length = strlen(part);
    tern_place *match = NULL;
    tern_text list = {0};
    int matches = 0;
    for (int i = 0; i < tern_registry_count(kind); i++) {
        tern_place *place = tern_registry_place(kind, i);
        if (!contains(place->info.name, part, length) &&
            !contains(place->info.vendor, part, length) &&
            !contains(place->info.platform, part, length))
            continue;
        match = place;
        matches++;
        tern_text_add(&list, "%s%s (%s)", matches > 1 ? ", " : "", place->text, place->info.name);
    }
    if (matches > 1)
        tern_fail(TERN_ERR_DEVICE, "%s: \"%s\" matches %d devices: %s", function, device, matches,
                  list.data ? list.data : "");
    tern_text_free(&list);
    if (matches == 0)
        return tern_registry_count(kind) == 0
                   ? no_device(kind, device, function)
                   : refuse(function, device,
                            "no %s device has \"%s\" in its name, vendor or platform",
                            tern_registry_kind_name(kind), part);
    return matches == 1 ? match : NULL;
}

static tern_place *the_cpu(const char *function)
{
    tern_place *place = tern_registry_place(0, 0);
    return place ? place : no_device(0, "cpu", function);
}

/* Returns the first device that is no processor of the best backend that has one (cuda, then
 * opencl), or else the cpu. */
static tern_place *best(const char *function)
{
    for (int k = tern_registry_kinds() - 1; k > 0; k--)
        for (int i = 0; i < tern_registry_count(k); i++) {
            tern_place *place = tern_registry_place(k, i);
            if (place->info.type != TERN_DEVICE_CPU)
                return place;
        }
    return the_cpu(function);
}

static bool all_digits(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static bool name_part(const char *text)
{
    size_t n = strlen(text);
    if (n < 3 || isspace((unsigned char)text[0]) || isspace((unsigned char)text[n - 1]))
        return false;
    for (; *text; text++)
        if (isalpha((unsigned char)*text))
            return true;
    return false;
}

static tern_place *parse(const char *device, const char *function)
{
    tern_env_check();
    if (*device == '\0')
        return refuse(function, device, "Device string must not be empty");
    if (strcmp(device, "auto") == 0)
        return best(function);
    size_t length = strcspn(device, ":");
    int kind = tern_registry_kind(device, length);
    if (kind < 0) {
        char kinds[64];
        bool blank = isspace((unsigned char)device[0]) || strpbrk(device, " \t\n") != NULL;
        if (blank)
            return refuse(function, device, "Invalid device string: '%s'", device);
        return refuse(function, device,
                      "Expected one of %s, auto device type at start of device string: %.*s",
                      kind_list(kinds, sizeof kinds), (int)length, device);
    }
    const char *rest = device + length;
    if (*rest == '\0') {
        tern_place *place = tern_registry_place(kind, tern_thread.current_device[kind]);
        return place ? place : no_device(kind, device, function);
    }
    rest++;
    if (all_digits(rest))
        return by_index(kind, rest, device, function);
    if (kind > 0 && name_part(rest) && !strchr(rest, ':'))
        return by_name_part(kind, rest, device, function);
    return refuse(function, device, "Invalid device string: '%s'", device);
}

static tern_place *process_default(const char *function)
{
    const char *chosen = tern_env(TERN_ENV_DEVICE);
    char variable[128];
    tern_env_check();
    if (!chosen)
        return the_cpu(function);
    snprintf(variable, sizeof variable, "TERN_DEVICE=\"%.64s\" in the environment", chosen);
    return parse(chosen, variable);
}

tern_place *tern_place_name(const char *device, const char *function)
{
    if (device)
        return parse(device, function);
    if (!tern_thread.default_place)
        tern_thread.default_place = process_default(function);
    return tern_thread.default_place;
}

tern_place *tern_place_find(const char *device, const char *function)
{
    tern_place *place = tern_place_name(device, function);
    return place && tern_registry_open(place) == TERN_OK ? place : NULL;
}

/* ---- public functions ------------------------------------------------------------------------ */

/* Errors are held and dropped, so that no error handler is called and no error policy stops the
 * program. */
bool tern_device_is_available(const char *device)
{
    tern_error_hold hold;
    if (!device || tern_error_hold_begin(&hold) != TERN_OK)
        return false;
    tern_place *place = parse(device, "tern_device_is_available");
    bool available = place && tern_registry_open(place) == TERN_OK;
    tern_error_hold_end(&hold, NULL, 0);
    return available;
}

int tern_device_count(const char *kind)
{
    int k = kind ? tern_registry_kind(kind, strlen(kind)) : -1;
    return k < 0 ? 0 : tern_registry_count(k);
}

const char *tern_device_notes(const char *kind)
{
    int k = kind ? tern_registry_kind(kind, strlen(kind)) : -1;
    if (k >= 0)
        return tern_registry_notes(k);
    return "this build of tern has no such kind of device";
}

tern_status tern_device_get_info(const char *device, tern_device_info *info)
{
    if (!info)
        return tern_fail_argument_null("tern_device_get_info", "info");
    tern_place *place = tern_place_find(device, "tern_device_get_info");
    if (!place)
        return tern_last_status();
    uint64_t free_bytes, total;
    TERN_TRY(place->backend->memory(place, &free_bytes, &total));
    *info = place->info;
    info->memory_free = free_bytes;
    info->memory_total = total;
    info->matrix_unit = "";
    if (place->backend->vendor && place->backend->vendor->describe)
        place->backend->vendor->describe(place, info);
    return TERN_OK;
}

const char *tern_device_name(const char *device)
{
    tern_place *place = tern_place_name(device, "tern_device_name");
    return place ? place->info.name : NULL;
}

const char *tern_device_canonical(const char *device)
{
    tern_place *place = tern_place_name(device, "tern_device_canonical");
    return place ? place->text : NULL;
}

const char *tern_default_device(void)
{
    tern_place *place = tern_place_name(NULL, "tern_default_device");
    return place ? place->text : NULL;
}

tern_status tern_set_default_device(const char *device)
{
    if (!device) {
        tern_thread.default_place = NULL;
        return TERN_OK;
    }
    tern_place *place = tern_place_find(device, "tern_set_default_device");
    if (!place)
        return tern_last_status();
    tern_thread.default_place = place;
    return TERN_OK;
}

tern_status tern_set_device(const char *device)
{
    if (!device)
        return tern_fail_argument_null("tern_set_device", "device");
    tern_place *place = tern_place_find(device, "tern_set_device");
    if (!place)
        return tern_last_status();
    int kind = tern_registry_kind(place->backend->kind, strlen(place->backend->kind));
    tern_thread.current_device[kind] = place->index;
    return TERN_OK;
}

const char *tern_opened_device_at(int i)
{
    tern_place *place;
    for (int k = 0; i >= 0 && (place = tern_place_at(k)); k++)
        if (atomic_load_explicit(&place->is_open, memory_order_acquire) && i-- == 0)
            return place->text;
    return NULL;
}

const char *tern_current_device(const char *kind)
{
    int k = kind ? tern_registry_kind(kind, strlen(kind)) : -1;
    tern_place *place = k < 0 ? NULL : tern_registry_place(k, tern_thread.current_device[k]);
    if (!place)
        tern_fail(TERN_ERR_DEVICE, "tern_current_device: there is no device of kind \"%s\"",
                  kind ? kind : "NULL");
    return place ? place->text : NULL;
}

tern_device_block tern_device_block_enter(const char *device)
{
    tern_device_block block = {.active = 1, .saved = -1};
    tern_place *old = tern_thread.default_place;
    tern_place *place = tern_place_find(device, "TERN_DEVICE");
    /* block.saved is kind * 65536 + index of the old place; -1 is "the process's default". */
    if (old)
        block.saved =
            tern_registry_kind(old->backend->kind, strlen(old->backend->kind)) * 65536 + old->index;
    if (place)
        tern_thread.default_place = place;
    return block;
}

void tern_device_block_leave(tern_device_block *block)
{
    tern_thread.default_place =
        block->saved < 0 ? NULL : tern_registry_place(block->saved / 65536, block->saved % 65536);
}
