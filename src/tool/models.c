/* models.c -- the parts of `tern show` and `tern convert` that use libtern_models, if that is
 * built. */
#include "tool/convert.h"
#include "tool/tool.h"
#include <stdlib.h>
#include <string.h>
#ifdef TERN_TOOL_MODELS
#include <tern/models.h>

static void print_special(const tern_tokenizer *t, const char *what, tern_special_token which)
{
    const int64_t id = tern_tokenizer_special_id(t, which);
    const char *token = id < 0 ? NULL : tern_tokenizer_id_to_token(t, id);
    if (id < 0)
        return;
    printf("%s: %lld ", what, (long long)id);
    tool_print_text(token ? token : "");
}

bool tool_show_tokenizer(const char *path)
{
    tern_tokenizer *t = tern_tokenizer_from_pretrained(path);
    if (!t)
        return false;
    printf("tokens: %lld\n", (long long)tern_tokenizer_vocab_size(t));
    print_special(t, "bos", TERN_TOKEN_BOS);
    print_special(t, "eos", TERN_TOKEN_EOS);
    print_special(t, "pad", TERN_TOKEN_PAD);
    const char *template = tern_tokenizer_chat_template(t);
    if (template) {
        fputs("chat template: ", stdout);
        tool_print_text(template);
    }
    tern_tokenizer_free(t);
    return true;
}

bool tool_is_tokenizer(const char *path)
{
    tern_tokenizer *t = tern_tokenizer_from_file(path);
    tern_tokenizer_free(t);
    return t != NULL;
}

bool tool_show_sound(const char *path)
{
    bool good = false;
    TERN_SCOPE {
        int64_t rate = 0;
        char text[128];
        tern_tensor *x = tern_audio_load(path, &rate);
        good = x != NULL;
        if (good)
            printf("sound: %s samples, %lld a second\n", tool_shape(tern_shape_of(x), text),
                   (long long)rate);
    }
    return good;
}

int tool_write_model(const char *from, const char *path, const char *type)
{
    tern_module *m = tern_models_from_pretrained(from, &(tern_pretrained_options){.device = "cpu"});
    const bool good =
        m && tern_models_save_pretrained(m, path, &(tern_save_options){.type = type}) == TERN_OK;
    if (!good)
        tool_fail_with_error();
    tern_nn_free(m);
    return good ? TOOL_FINE : TOOL_WRONG;
}

#else

static bool lacks(void)
{
    return tern_fail(TERN_ERR_UNSUPPORTED,
                     "tern_show: this build has no libtern_models (CMake: -DTERN_MODELS=ON)"),
           false;
}

bool tool_show_tokenizer(const char *path)
{
    (void)path;
    return lacks();
}

bool tool_is_tokenizer(const char *path)
{
    (void)path;
    return false;
}

bool tool_show_sound(const char *path)
{
    (void)path;
    return lacks();
}

int tool_write_model(const char *from, const char *path, const char *type)
{
    (void)from, (void)path, (void)type;
    return lacks() ? TOOL_FINE : tool_fail_with_error();
}
#endif
