/* stage.c -- modules that are one operation of their input, as stages of a Sequential. */
#include "nn/layers/layer.h"
#include "nn/module.h"

/* Hooks and others see a module's input and result, and a computed parameter is made by the
 * module's run. */
bool tern_layer_stage(tern_module *m, tern_stage *stage)
{
    if (!m || m->hooks || m->around || m->computes)
        return false;
    *stage = (tern_stage){.module = m, .ref = {m, m->number}};
    return tern_layer_linear_stage(m, stage) || tern_layer_activation_stage(m, stage);
}
