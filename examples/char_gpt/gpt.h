/* gpt.h -- a small GPT as a module. */
#ifndef CHAR_GPT_GPT_H
#define CHAR_GPT_GPT_H
#include <tern/tern.h>

typedef struct gpt_options {
    int vocabulary, layers, width, heads, context;
    bool tied; /* the head's weight is the token embedding's (Press and Wolf 2017) */
} gpt_options;

/* Ids (N, T) of int64, T <= context -> logits (N T, vocabulary). NULL after an error. */
tern_module *gpt_new(const gpt_options *options);
/* Starting values as in GPT-2 (Radford et al. 2019): normal with standard deviation 0.02. */
tern_status gpt_init(tern_module *gpt);

#endif
