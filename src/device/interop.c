/* interop.c -- returns the driver's objects of a device, and sets those of the application. */
#include <tern/interop.h>
#include "device/capture.h"
#include "base/lock.h"
#include "device/registry.h"
#include <string.h>

tern_status tern_device_get_handles(const char *device, tern_device_handles *handles)
{
    if (!handles)
        return tern_fail_argument_null("tern_device_get_handles", "handles");
    tern_place *place = tern_place_find(device, "tern_device_get_handles");
    if (!place)
        return tern_last_status();
    place->backend->handles(place, handles);
    return TERN_OK;
}

tern_status tern_device_set_handles(const char *device, const tern_device_handles *handles)
{
    if (!handles)
        return tern_fail_argument_null("tern_device_set_handles", "handles");
    tern_place *place = tern_place_name(device, "tern_device_set_handles");
    if (!place)
        return tern_last_status();
    if (tern_capture_of(place))
        return tern_capture_refuse(place, "another queue");
    tern_mutex_lock(&place->lock);
    tern_status status = place->backend->use_handles(place, handles);
    tern_mutex_unlock(&place->lock);
    return status;
}

const char *tern_device_from_handles(const char *kind, const tern_device_handles *handles)
{
    static const char function[] = "tern_device_from_handles";
    if (!kind || !handles) {
        tern_fail_argument_null(function, kind ? "handles" : "kind");
        return NULL;
    }
    int number = tern_registry_kind(kind, strlen(kind));
    for (int i = 0; number >= 0 && i < tern_registry_count(number); i++) {
        tern_place *place = tern_registry_place(number, i);
        tern_device_handles own;
        place->backend->handles(place, &own);
        if (own.device ? own.device == handles->device : own.index == handles->index)
            return place->text;
    }
    return tern_fail_null(TERN_ERR_DEVICE, "%s: no device of kind \"%s\" is that one", function,
                          kind);
}
