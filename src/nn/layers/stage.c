/* stage.c -- modules that consist of one operation, as stages of a Sequential. */
#include "nn/layers/layer.h"
#include "nn/module.h"

/* A module with hooks or other wrappers is no stage, since these see its input and result. Nor is
 * one with computed parameters, which its own forward computes. */
bool tern_layer_stage(tern_module *m, tern_stage *stage)
{
    if (!m || m->hooks || m->around || m->computes)
        return false;
    *stage = (tern_stage){.module = m, .ref = {m, m->number}};
    return tern_layer_linear_stage(m, stage) || tern_layer_activation_stage(m, stage);
}
