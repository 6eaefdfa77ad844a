/* nn/packed.h -- packed sequences: sequences of different lengths without padding
 * (torch.nn.utils.rnn). */
#ifndef TERN_NN_PACKED_H
#define TERN_NN_PACKED_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* A packed sequence holds the time steps one after the other. Each step has the rows of the
 * sequences that have not ended, the longest sequence first. batch_sizes (steps) has the number of
 * rows of each step. sorted_indices (batch) maps sorted positions to sequences, and
 * unsorted_indices is its inverse; both are NULL if the sequences were sorted already. All three
 * are int64; batch_sizes is on "cpu", the others are on the device of data. */
typedef struct tern_packed_sequence {
    tern_tensor *data; /* (rows of all steps, *) */
    tern_tensor *batch_sizes;
    tern_tensor *sorted_indices, *unsorted_indices;
} tern_packed_sequence;

typedef struct tern_pack_sequence_options {
    bool batch_first;        /* input is (batch, time, *) instead of (time, batch, *) */
    bool not_enforce_sorted; /* lengths need not be in descending order: the function sorts the
                              * sequences */
    uint64_t reserved[4];
} tern_pack_sequence_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pack_sequence_options tern_pack_sequence_defaults(void);

/* Packs a padded batch: the first lengths[i] steps of each sequence i of input. Differentiable.
 * Errors: TERN_ERR_ARGUMENT for lengths that are below 1, longer than the input, or not in
 * descending order. */
TERN_API tern_status tern_nn_pack_padded_sequence(tern_tensor *input, const int64_t *lengths, int n,
                                                  const tern_pack_sequence_options *options,
                                                  tern_packed_sequence *out);

typedef struct tern_pad_sequence_options {
    bool batch_first;
    double padding_value;
    int64_t total_length; /* default (and -1): the length of the longest sequence */
    uint64_t reserved[4];
} tern_pad_sequence_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pad_sequence_options tern_pad_sequence_defaults(void);

/* Returns a packed sequence as a padded batch (time, batch, *), with the sequences in their
 * original order. If lengths is not NULL, *lengths becomes the length of each, int64 on "cpu".
 * Differentiable. */
TERN_API tern_tensor *tern_nn_pad_packed_sequence(const tern_packed_sequence *sequence,
                                                  const tern_pad_sequence_options *options,
                                                  tern_tensor **lengths);

/* Returns n sequences (length, *) as one tensor (longest, n, *), padded at their ends. */
TERN_API tern_tensor *tern_nn_pad_sequence(tern_tensor *const *sequences, int n,
                                           const tern_pad_sequence_options *options);
/* Makes a packed sequence of n sequences (length, *). */
TERN_API tern_status tern_nn_pack_sequence(tern_tensor *const *sequences, int n,
                                           const tern_pack_sequence_options *options,
                                           tern_packed_sequence *out);

/* Runs an RNN, LSTM or GRU over a packed sequence. in is {}, {h0} or {h0, c0}; out gets the first k
 * of {h_n, c_n}, with the sequences in their original order. */
TERN_API tern_status tern_nn_call_packed(tern_module *m, const tern_packed_sequence *x,
                                         tern_tensor *const *in, int n,
                                         tern_packed_sequence *output, tern_tensor **out, int k);

TERN_END_DECLS
#endif
