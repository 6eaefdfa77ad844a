/* rnn_steps.c -- the steps of a layer in its direction: the rows of each step, and the rows that it
 * shares with the previous step. */
#include "ops/rnn/rnn.h"

size_t tern_rnn_steps_bytes(int64_t steps)
{
    return sizeof(tern_rnn_steps) + (size_t)steps * sizeof(int64_t);
}

/* Returns the step at time t, whose first row is `at`. Forward in time all rows but those of step 0
 * continue from the previous step, and rows beyond the size of the next step end with this step. In
 * reverse the previous step is t + 1: its rows continue, other rows begin, and all rows end at t =
 * 0. */
static tern_rnn_step step_at(const tern_rnn_steps *s, int64_t t, int64_t at)
{
    int64_t rows = s->sizes[t], next_rows = t + 1 < s->steps ? s->sizes[t + 1] : 0;
    tern_rnn_step step = {.t = t, .at = at, .rows = rows};
    if (s->reverse) {
        step.before = next_rows ? at + rows : at;
        step.carried = next_rows;
        step.last = t > 0 ? rows : 0;
    } else {
        step.before = t > 0 ? at - s->sizes[t - 1] : at;
        step.carried = t > 0 ? rows : 0;
        step.last = next_rows;
    }
    return step;
}

/* Time increases in the forward of a forward layer and in the backward of a reverse layer. */
tern_rnn_step tern_rnn_begin(const tern_rnn_steps *s, bool back)
{
    int64_t at = 0;
    if (s->reverse == back)
        return step_at(s, 0, 0);
    for (int64_t t = 0; t + 1 < s->steps; t++)
        at += s->sizes[t];
    return step_at(s, s->steps - 1, at);
}

bool tern_rnn_next(const tern_rnn_steps *s, bool back, tern_rnn_step *step)
{
    int64_t t = s->reverse == back ? step->t + 1 : step->t - 1;
    if (t < 0 || t >= s->steps)
        return false;
    *step = step_at(s, t, t > step->t ? step->at + step->rows : step->at - s->sizes[t]);
    return true;
}
