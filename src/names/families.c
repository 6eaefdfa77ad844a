/* families.c -- names of the families whose rows call the public functions and nothing else. */
#include "names/rows.h"
#include <math.h>

#define TABLE  names_attention
#define FAMILY "names/attention.def"
#include "names/expand.h"

#define TABLE  names_copy
#define FAMILY "names/copy.def"
#include "names/expand.h"

#define TABLE  names_embedding
#define FAMILY "names/embedding.def"
#include "names/expand.h"

/* Returns indices as int64, or as int32 if the argument dtype says so. */
static tern_tensor *places_as(tern_tensor *places, const names_argument *dtype, const char *name)
{
    if (!dtype->given || dtype->dtype == TERN_I64 || dtype->dtype == TERN_I32)
        return dtype->given ? tern_to_dtype(places, dtype->dtype) : places;
    return tern_fail_null(TERN_ERR_DTYPE, "tern_%s: \"%s\" not implemented for %s", name, name,
                          tern_dtype_name(dtype->dtype));
}

#define TABLE  names_layout
#define FAMILY "names/layout.def"
#include "names/expand.h"

#define TABLE  names_loss
#define FAMILY "names/loss.def"
#include "names/expand.h"

#define TABLE  names_matmul
#define FAMILY "names/matmul.def"
#include "names/expand.h"

#define TABLE  names_norm
#define FAMILY "names/norm.def"
#include "names/expand.h"

#define TABLE  names_pad
#define FAMILY "names/pad.def"
#include "names/expand.h"

#define TABLE  names_fft
#define FAMILY "names/fft.def"
#include "names/expand.h"

#define TABLE  names_random
#define FAMILY "names/random.def"
#include "names/expand.h"

#define TABLE  names_scan
#define FAMILY "names/scan.def"
#include "names/expand.h"

#define TABLE  names_signal
#define FAMILY "names/signal.def"
#include "names/expand.h"

#define TABLE  names_softmax
#define FAMILY "names/softmax.def"
#include "names/expand.h"

#define TABLE  names_special
#define FAMILY "names/special.def"
#include "names/expand.h"

#define TABLE  names_statistics
#define FAMILY "names/statistics.def"
#include "names/expand.h"
