/* print.c -- a module as text, in PyTorch's format. */
#include "base/text.h"
#include "nn/module.h"
#include <stdio.h>
#include <string.h>

/* Appends text, with all lines but the first indented. */
static void add_lines(tern_text *out, const char *text, int indent)
{
    for (size_t n; *text; text += n) {
        n = strcspn(text, "\n");
        n += text[n] == '\n';
        tern_text_add_bytes(out, text, n);
        if (text[n - 1] == '\n')
            tern_text_add(out, "%*s", indent, "");
    }
}

/* Appends a line "(name): Parameter containing: [torch.float32 of size 2x3]" for each parameter,
 * indented by four more. */
static void add_parameters(tern_text *out, const tern_module *m, int indent)
{
    for (int i = 0; i < m->count; i++) {
        const tern_tensor *x = m->members[i].tensor;
        char size[256];
        if (m->members[i].kind != MEMBER_PARAMETER || !x)
            continue;
        tern_shape shape = tern_shape_of(x);
        tern_format_product(size, sizeof size, shape.dims, shape.ndim);
        tern_text_add(out, "\n%*s(%s): Parameter containing: [torch.%s of size %s]", indent + 4, "",
                      m->members[i].name, tern_dtype_name(tern_dtype_of(x)),
                      shape.ndim ? size : "");
    }
}

/* Appends "Name(extra)" on one line, or "Name(" and below it, indented by two more, the extra text
 * and a "(child): ..." for each child. */
static void add_module(tern_text *out, const tern_module *m, int indent)
{
    bool has_extra = m->extra && *m->extra;
    bool short_extra = has_extra && !strchr(m->extra, '\n');
    int children = tern_nn_children_count(m);
    tern_text_add(out, "%s(", m->name);
    bool parameters = m->shows_parameters && m->count > children;
    if (children == 0 && !parameters && (short_extra || !has_extra)) {
        tern_text_add(out, "%s)", has_extra ? m->extra : "");
        return;
    }
    if (has_extra) {
        tern_text_add(out, "\n%*s", indent + 2, "");
        add_lines(out, m->extra, indent + 2);
    }
    if (parameters)
        add_parameters(out, m, indent);
    for (int i = 0; i < m->count; i++) {
        if (!m->members[i].child)
            continue;
        tern_text_add(out, "\n%*s(%s): ", indent + 2, "", m->members[i].name);
        add_module(out, m->members[i].child, indent + 2);
    }
    tern_text_add(out, "\n%*s)", indent, "");
}

char *tern_nn_to_text(const tern_module *m)
{
    TERN_MODULE_GIVEN(m, "tern_nn_to_text");
    tern_text text = {0};
    if (!m) {
        tern_fail_argument_null("tern_nn_to_text", "m");
        return NULL;
    }
    add_module(&text, m, 0);
    if (text.failed)
        tern_text_free(&text);
    return text.data;
}

tern_status tern_nn_print(const tern_module *m)
{
    TERN_NAMED_IN_ERRORS;
    char *text = tern_nn_to_text(m);
    if (!text)
        return tern_last_status();
    printf("%s\n", text);
    tern_free(text);
    return TERN_OK;
}
