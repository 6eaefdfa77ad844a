/* uses.c -- blocks as they may be used, in C and C++; tests/blocks/check compiles it without a warning. */
#include <tern/tern.h>

tern_tensor *ends_in_a_block(tern_tensor *x);
tern_tensor *ends_in_two(tern_tensor *x);
tern_tensor *assigns(tern_tensor *x);
tern_tensor *nests(tern_tensor *x);
tern_tensor *chooses(bool first, tern_tensor *x);
tern_tensor *returns_either_way(bool first, tern_tensor *x);
int goes_on(int n);
int jumps(int n);
int loops_inside(int n);
int switches(int n);
int in_a_switch(int n);
int on_one_line(int n);
int without_braces(int n);
int every_block(tern_graph *graph);
int every_twin(tern_graph *graph, int n);
int twins_in_loops(int n);

tern_tensor *ends_in_a_block(tern_tensor *x)
{
    TERN_SCOPE {
        return tern_escape(tern_exp(x));
    }
}

tern_tensor *ends_in_two(tern_tensor *x)
{
    TERN_NO_GRAD
        TERN_SCOPE {
            return tern_escape(tern_exp(x));
        }
}

/* What is set in a block is set. */
tern_tensor *assigns(tern_tensor *x)
{
    tern_tensor *y;
    double sum;
    TERN_SCOPE {
        y = tern_keep(tern_exp(x));
        sum = tern_item(tern_sum(y));
    }
    return sum > 0 ? y : x;
}

tern_tensor *nests(tern_tensor *x)
{
    tern_tensor *y;
    TERN_SCOPE {
        TERN_SCOPE {
            TERN_DEVICE ("cpu") {
                TERN_DEVICE ("cpu") {
                    y = tern_exp(x);
                }
            }
        }
    }
    return y;
}

tern_tensor *chooses(bool first, tern_tensor *x)
{
    tern_tensor *y;
    if (first)
        TERN_SCOPE {
            y = tern_exp(x);
        }
    else
        TERN_SCOPE {
            y = tern_log(x);
        }
    return y;
}

tern_tensor *returns_either_way(bool first, tern_tensor *x)
{
    TERN_SCOPE {
        if (first)
            return tern_escape(tern_exp(x));
        else
            return tern_escape(tern_log(x));
    }
}

int goes_on(int n)
{
    int odd = 0;
    for (int i = 0; i < n; i++)
        TERN_SCOPE {
            if (i % 2 == 0)
                continue;
            odd++;
        }
    return odd;
}

int jumps(int n)
{
    for (int i = 0; i < n; i++)
        TERN_SCOPE {
            TERN_NO_GRAD {
                if (i == 3)
                    goto out;
            }
        }
    return 0;
out:
    return 1;
}

int loops_inside(int n)
{
    int turns = 0;
    TERN_SCOPE {
        for (int i = 0; i < n; i++) {
            if (i == 3)
                break;
            turns++;
        }
        while (true)
            break;
    }
    return turns;
}

int switches(int n)
{
    int value = 0;
    TERN_SCOPE {
        switch (n) {
        case 1:
            value = 10;
            break;
        default:
            break;
        }
    }
    return value;
}

int in_a_switch(int n)
{
    int value = 0;
    switch (n) {
    case 1:
        TERN_SCOPE {
            value = 10;
        }
        break;
    default:
        TERN_SCOPE {
            value = 20;
        }
    }
    return value;
}

/* clang-format off */
int on_one_line(int n)
{
    TERN_SCOPE { n++; } TERN_SCOPE { n++; } TERN_SCOPE { TERN_SCOPE { n++; } }
    return n;
}
/* clang-format on */

int without_braces(int n)
{
    TERN_NO_GRAD
        n++;
    TERN_SCOPE
        if (n > 3)
            return n;
    TERN_SCOPE
        for (int i = 0; i < 3; i++)
            n++;
    return n;
}

static tern_tensor *as_it_is(tern_tensor *x, void *user)
{
    (void)user;
    return x;
}

int every_block(tern_graph *graph)
{
    int blocks = 0;
    TERN_SCOPE {
        blocks++;
    }
    TERN_DEVICE ("cpu") {
        blocks++;
    }
    TERN_NO_GRAD {
        blocks++;
    }
    TERN_ENABLE_GRAD
    {
        blocks++;
    }
    TERN_GRAD_MODE(false)
    {
        blocks++;
    }
    TERN_AUTOCAST ("cpu", TERN_BF16) {
        blocks++;
    }
    TERN_AUTOCAST_MODE("cpu", TERN_BF16, false)
    {
        blocks++;
    }
    TERN_DETECT_ANOMALY {
        blocks++;
    }
    TERN_DETECT_ANOMALY_MODE (true, NULL) {
        blocks++;
    }
    TERN_ANOMALY_LABEL ("here") {
        blocks++;
    }
    TERN_CAPTURE (graph) {
        blocks++;
    }
    TERN_UNRECORDED {
        blocks++;
    }
    TERN_SAVED_TENSORS_HOOKS(as_it_is, as_it_is, NULL)
    {
        blocks++;
    }
    TERN_SAVE_ON_CPU
    {
        blocks++;
    }
    TERN_PROFILE("trace.json")
    {
        blocks++;
    }
    TERN_PROFILER_LABEL("here")
    {
        blocks++;
    }
    TERN_STRICT
    {
        blocks++;
    }
    return blocks;
}

int every_twin(tern_graph *graph, int n)
{
    TERN_SCOPE_HERE;
    TERN_DEVICE_HERE("cpu");
    TERN_NO_GRAD_HERE;
    TERN_ENABLE_GRAD_HERE;
    TERN_GRAD_MODE_HERE(false);
    TERN_AUTOCAST_HERE("cpu", TERN_BF16);
    TERN_AUTOCAST_MODE_HERE("cpu", TERN_BF16, false);
    TERN_DETECT_ANOMALY_HERE;
    TERN_DETECT_ANOMALY_MODE_HERE(true, NULL);
    TERN_ANOMALY_LABEL_HERE("here");
    TERN_CAPTURE_HERE(graph);
    TERN_UNRECORDED_HERE;
    TERN_SAVED_TENSORS_HOOKS_HERE(as_it_is, as_it_is, NULL);
    TERN_SAVE_ON_CPU_HERE;
    TERN_PROFILE_HERE("trace.json");
    TERN_PROFILER_LABEL_HERE("here");
    TERN_STRICT_HERE;
    return n;
}

int twins_in_loops(int n)
{
    int turns = 0;
    for (;;) {
        TERN_SCOPE_HERE;
        TERN_SCOPE_HERE;
        if (turns++ == n)
            break;
        if (turns % 2)
            continue;
        for (int i = 0; i < n; i++) {
            TERN_NO_GRAD_HERE;
            if (i == 3)
                return turns;
        }
    }
    return turns;
}
