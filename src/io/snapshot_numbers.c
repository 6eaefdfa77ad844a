/* snapshot_numbers.c -- numbers as metadata texts, and the parts of a snapshot that consist of
 * numbers. */
#include "io/snapshot.h"
#include "base/os.h"
#include "io/file.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/data/loader.h>
#include <tern/metrics.h>

/* ---- texts ----------------------------------------------------------------------------------- */

enum { KEY = 512 };

static const char *key_of(char key[KEY], const char *name, const char *field)
{
    snprintf(key, KEY, "%s%s%s", name, field ? "." : "", field ? field : "");
    return key;
}

tern_status io_note_int(tern_state_dict *to, const char *name, const char *field, int64_t value)
{
    char key[KEY], text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return tern_state_dict_set_metadata(to, key_of(key, name, field), text);
}

static tern_status note_unsigned(tern_state_dict *to, const char *name, const char *field,
                                 uint64_t value)
{
    char key[KEY], text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return tern_state_dict_set_metadata(to, key_of(key, name, field), text);
}

tern_status io_note_real(tern_state_dict *to, const char *name, const char *field, double value)
{
    char key[KEY], text[40];
    tern_os_print_real(text, sizeof text, "%.17g", isnan(value) ? fabs(value) : value);
    return tern_state_dict_set_metadata(to, key_of(key, name, field), text);
}

static const char *text_of(const tern_state_dict *from, const char *name, const char *field)
{
    char key[KEY];
    const char *text = tern_state_dict_metadata(from, key_of(key, name, field));
    if (!text)
        tern_fail(TERN_ERR_STATE, "tern_snapshot_load: the file has no %s", IO_SHOW(key));
    return text;
}

static tern_status bad_number(const char *name, const char *field, const char *text)
{
    char key[KEY];
    return tern_fail(TERN_ERR_STATE, "tern_snapshot_load: %s is \"%s\", which is no number",
                     IO_SHOW(key_of(key, name, field)), IO_SHOW(text));
}

tern_status io_read_int(const tern_state_dict *from, const char *name, const char *field,
                        int64_t *value)
{
    const char *text = text_of(from, name, field);
    char *end;
    if (!text)
        return tern_last_status();
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno || end == text || *end ? bad_number(name, field, text) : TERN_OK;
}

static tern_status read_unsigned(const tern_state_dict *from, const char *name, const char *field,
                                 uint64_t *value)
{
    const char *text = text_of(from, name, field);
    char *end;
    if (!text)
        return tern_last_status();
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno || end == text || *end || *text == '-' ? bad_number(name, field, text) : TERN_OK;
}

tern_status io_read_real(const tern_state_dict *from, const char *name, const char *field,
                         double *value)
{
    const char *text = text_of(from, name, field);
    if (!text)
        return tern_last_status();
    char *end;
    *value = tern_os_strtod(text, &end);
    return end == text || *end ? bad_number(name, field, text) : TERN_OK;
}

/* ---- numbers of the program ------------------------------------------------------------------ */

static tern_status save_int(const io_snapshot_part *part, tern_state_dict *to)
{
    return io_note_int(to, part->name, NULL, *(const int64_t *)part->object);
}

static tern_status load_int(const io_snapshot_part *part, const tern_state_dict *from, bool apply)
{
    int64_t value;
    TERN_TRY(io_read_int(from, part->name, NULL, &value));
    if (apply)
        *(int64_t *)part->object = value;
    return TERN_OK;
}

const io_part_kind io_part_int = {save_int, load_int, NULL};

static tern_status save_real(const io_snapshot_part *part, tern_state_dict *to)
{
    return io_note_real(to, part->name, NULL, *(const double *)part->object);
}

static tern_status load_real(const io_snapshot_part *part, const tern_state_dict *from, bool apply)
{
    double value;
    TERN_TRY(io_read_real(from, part->name, NULL, &value));
    if (apply)
        *(double *)part->object = value;
    return TERN_OK;
}

const io_part_kind io_part_real = {save_real, load_real, NULL};

/* ---- scalers --------------------------------------------------------------------------------- */

static tern_status save_scaler(const io_snapshot_part *part, tern_state_dict *to)
{
    tern_scaler_state state;
    TERN_TRY(tern_amp_get_state(part->object, &state));
    TERN_TRY(io_note_real(to, part->name, "scale", state.scale));
    TERN_TRY(io_note_real(to, part->name, "growth_factor", state.growth_factor));
    TERN_TRY(io_note_real(to, part->name, "backoff_factor", state.backoff_factor));
    TERN_TRY(io_note_int(to, part->name, "growth_interval", state.growth_interval));
    return io_note_int(to, part->name, "growth_tracker", state.growth_tracker);
}

static tern_status load_scaler(const io_snapshot_part *part, const tern_state_dict *from,
                               bool apply)
{
    tern_scaler_state state = {0};
    TERN_TRY(io_read_real(from, part->name, "scale", &state.scale));
    TERN_TRY(io_read_real(from, part->name, "growth_factor", &state.growth_factor));
    TERN_TRY(io_read_real(from, part->name, "backoff_factor", &state.backoff_factor));
    TERN_TRY(io_read_int(from, part->name, "growth_interval", &state.growth_interval));
    TERN_TRY(io_read_int(from, part->name, "growth_tracker", &state.growth_tracker));
    return apply ? tern_amp_set_state(part->object, &state) : TERN_OK;
}

const io_part_kind io_part_scaler = {save_scaler, load_scaler, NULL};

/* ---- schedulers ------------------------------------------------------------------------------ */

static tern_status save_scheduler(const tern_lr_scheduler *s, const char *name, tern_state_dict *to)
{
    tern_lr_scheduler_state state;
    TERN_TRY(tern_lr_scheduler_get_state(s, &state));
    TERN_TRY(io_note_int(to, name, "last_epoch", state.last_epoch));
    TERN_TRY(io_note_int(to, name, "t_cur", state.t_cur));
    TERN_TRY(io_note_int(to, name, "t_i", state.t_i));
    TERN_TRY(io_note_real(to, name, "best", state.best));
    TERN_TRY(io_note_int(to, name, "num_bad_epochs", state.num_bad_epochs));
    TERN_TRY(io_note_int(to, name, "cooldown_counter", state.cooldown_counter));
    for (int i = 0; tern_lr_scheduler_part(s, i); i++) {
        char inner[KEY];
        snprintf(inner, sizeof inner, "%.400s.%d", name, i);
        TERN_TRY(save_scheduler(tern_lr_scheduler_part(s, i), inner, to));
    }
    return TERN_OK;
}

/* The parts are loaded first: the whole reports the rates that they set. */
static tern_status load_scheduler(tern_lr_scheduler *s, const char *name,
                                  const tern_state_dict *from, bool apply)
{
    tern_lr_scheduler_state state = {0};
    for (int i = 0; tern_lr_scheduler_part(s, i); i++) {
        char inner[KEY];
        snprintf(inner, sizeof inner, "%.400s.%d", name, i);
        TERN_TRY(load_scheduler(tern_lr_scheduler_part(s, i), inner, from, apply));
    }
    TERN_TRY(io_read_int(from, name, "last_epoch", &state.last_epoch));
    TERN_TRY(io_read_int(from, name, "t_cur", &state.t_cur));
    TERN_TRY(io_read_int(from, name, "t_i", &state.t_i));
    TERN_TRY(io_read_real(from, name, "best", &state.best));
    TERN_TRY(io_read_int(from, name, "num_bad_epochs", &state.num_bad_epochs));
    TERN_TRY(io_read_int(from, name, "cooldown_counter", &state.cooldown_counter));
    return apply ? tern_lr_scheduler_set_state(s, &state) : TERN_OK;
}

static tern_status save_lr_scheduler(const io_snapshot_part *part, tern_state_dict *to)
{
    return save_scheduler(part->object, part->name, to);
}

static tern_status load_lr_scheduler(const io_snapshot_part *part, const tern_state_dict *from,
                                     bool apply)
{
    return load_scheduler(part->object, part->name, from, apply);
}

const io_part_kind io_part_lr_scheduler = {save_lr_scheduler, load_lr_scheduler, NULL};

/* ---- loaders --------------------------------------------------------------------------------- */

static tern_status save_loader(const io_snapshot_part *part, tern_state_dict *to)
{
    tern_loader_state state;
    TERN_TRY(tern_loader_get_state(part->object, &state));
    TERN_TRY(note_unsigned(to, part->name, "seed", state.seed));
    TERN_TRY(io_note_int(to, part->name, "epoch", state.epoch));
    TERN_TRY(io_note_int(to, part->name, "samples", state.samples));
    return note_unsigned(to, part->name, "fingerprint", state.fingerprint);
}

static tern_status load_loader(const io_snapshot_part *part, const tern_state_dict *from,
                               bool apply)
{
    tern_loader_state state = {0}, now;
    TERN_TRY(read_unsigned(from, part->name, "seed", &state.seed));
    TERN_TRY(io_read_int(from, part->name, "epoch", &state.epoch));
    TERN_TRY(io_read_int(from, part->name, "samples", &state.samples));
    TERN_TRY(read_unsigned(from, part->name, "fingerprint", &state.fingerprint));
    if (apply)
        return tern_loader_set_state(part->object, &state);
    TERN_TRY(tern_loader_get_state(part->object, &now));
    return now.fingerprint == state.fingerprint
               ? TERN_OK
               : tern_fail(TERN_ERR_STATE,
                           "tern_snapshot_load: %s is of another data set or sampler", part->name);
}

const io_part_kind io_part_loader = {save_loader, load_loader, NULL};

/* ---- early stopping -------------------------------------------------------------------------- */

static tern_status save_early_stopping(const io_snapshot_part *part, tern_state_dict *to)
{
    tern_early_stopping_state state;
    TERN_TRY(tern_early_stopping_get_state(part->object, &state));
    TERN_TRY(io_note_real(to, part->name, "best", state.best));
    TERN_TRY(io_note_int(to, part->name, "wait_count", state.wait_count));
    TERN_TRY(io_note_int(to, part->name, "is_best", state.is_best));
    return io_note_int(to, part->name, "stopped", state.stopped);
}

static tern_status load_early_stopping(const io_snapshot_part *part, const tern_state_dict *from,
                                       bool apply)
{
    tern_early_stopping_state state = {0};
    int64_t is_best, stopped;
    TERN_TRY(io_read_real(from, part->name, "best", &state.best));
    TERN_TRY(io_read_int(from, part->name, "wait_count", &state.wait_count));
    TERN_TRY(io_read_int(from, part->name, "is_best", &is_best));
    TERN_TRY(io_read_int(from, part->name, "stopped", &stopped));
    state.is_best = is_best != 0;
    state.stopped = stopped != 0;
    if (state.wait_count < 0)
        return tern_fail(TERN_ERR_STATE, "tern_snapshot_load: %s.wait_count is %" PRId64,
                         part->name, state.wait_count);
    return apply ? tern_early_stopping_set_state(part->object, &state) : TERN_OK;
}

const io_part_kind io_part_early_stopping = {save_early_stopping, load_early_stopping, NULL};

/* ---- generators ------------------------------------------------------------------------------ */

tern_status io_save_generators(tern_state_dict *to)
{
    const char *device = tern_default_device();
    if (!device)
        return tern_last_status();
    TERN_TRY(tern_state_dict_set_metadata(to, "rng.default", device));
    for (int i = -1; i < 0 || (device = tern_opened_device_at(i)); i++) {
        char name[64];
        tern_rng_state state;
        TERN_TRY(tern_get_rng_state(device, &state));
        snprintf(name, sizeof name, "rng.%.40s", device);
        TERN_TRY(note_unsigned(to, name, "seed", state.seed));
        TERN_TRY(note_unsigned(to, name, "offset", state.offset));
    }
    return TERN_OK;
}

static tern_status read_generator(const tern_state_dict *from, const char *device,
                                  tern_rng_state *state)
{
    char name[64];
    snprintf(name, sizeof name, "rng.%.40s", device);
    TERN_TRY(read_unsigned(from, name, "seed", &state->seed));
    return read_unsigned(from, name, "offset", &state->offset);
}

/* Writes the device of a key "rng.<device>.seed"; returns false for another key. */
static bool device_of(const char *key, char device[64])
{
    size_t n = strlen(key);
    if (n < 10 || n > 60 || strncmp(key, "rng.", 4) != 0 || strcmp(key + n - 5, ".seed") != 0)
        return false;
    snprintf(device, 64, "%.*s", (int)(n - 9), key + 4);
    return true;
}

/* Sets the generator of each device that exists. The state of the former default device is set
 * last, on the current default device. */
tern_status io_load_generators(const tern_state_dict *from, bool apply)
{
    const char *old = text_of(from, "rng", "default"), *now = tern_default_device();
    tern_rng_state state;
    if (!old || !now)
        return tern_last_status();
    for (int i = 0; i < tern_state_dict_metadata_count(from); i++) {
        char device[64];
        if (!device_of(tern_state_dict_metadata_key_at(from, i), device))
            continue;
        TERN_TRY(read_generator(from, device, &state));
        if (apply && strcmp(device, old) != 0 && tern_device_is_available(device))
            TERN_TRY(tern_set_rng_state(device, &state));
    }
    TERN_TRY(read_generator(from, old, &state));
    return apply ? tern_set_rng_state(now, &state) : TERN_OK;
}
