/* architectures.c -- models_all, the list of all architectures, from architectures.def. */
#include "models/model.h"

#define ARCHITECTURE(NAME) extern const models_architecture models_##NAME;
#include "models/architectures.def"
#undef ARCHITECTURE

#define ARCHITECTURE(NAME) &models_##NAME,
const models_architecture *const models_all[] = {
#include "models/architectures.def"
    NULL};
