/* kept.h -- tables of what must work while an earlier error is recorded. */
#ifndef TESTS_KEPT_H
#define TESTS_KEPT_H
#include "support.h"

static const char earlier[] = "an earlier error";

/* Something that must work, whatever is recorded. */
typedef struct deed {
    const char *name;
    bool (*works)(void);
} deed;

static inline bool kept(void)
{
    return strcmp(tern_last_error(), earlier) == 0;
}

static inline void each_works_and_keeps_the_error(const deed *deeds, size_t n)
{
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < n; i++)
        TERN_DEVICE (device)
            TERN_SCOPE {
                if (!deeds[i].works())
                    fail_msg("%s does not work at all: %s", deeds[i].name, tern_last_error());
                assert_no_error();
                tern_fail(TERN_ERR_IO, "%s", earlier);
                if (!deeds[i].works())
                    fail_msg("%s fails after an earlier error", deeds[i].name);
                if (!kept())
                    fail_msg("%s left another error: %s", deeds[i].name, tern_last_error());
                tern_clear_error();
            }
}

/* A leaf on the default device. */
static inline tern_tensor *numbers(tern_shape shape)
{
    tern_tensor *x = test_uniform(tern_default_device(), TERN_F32, shape, 0.1, 0.9, 7);
    return tern_requires_grad_(x, true);
}

#define D TERN_SHAPE

#endif
