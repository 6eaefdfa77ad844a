/* nn/packed.h -- sequences of different lengths without padding (torch.nn.utils.rnn). */
#ifndef TERN_NN_PACKED_H
#define TERN_NN_PACKED_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* The steps one after the other, each with the sequences that are still going on, the longest
 * first. batch_sizes (steps) counts them; sorted_indices (batch) says which sequence stands where,
 * and unsorted_indices where each one stands, both NULL when they came sorted. int64; batch_sizes
 * lies on "cpu", the others beside data. */
typedef struct tern_packed_sequence {
    tern_tensor *data; /* (rows of all steps, *) */
    tern_tensor *batch_sizes;
    tern_tensor *sorted_indices, *unsorted_indices;
} tern_packed_sequence;

typedef struct tern_pack_sequence_options {
    bool batch_first;        /* input is (batch, time, *) instead of (time, batch, *) */
    bool not_enforce_sorted; /* lengths need not fall: the sequences are sorted */
    uint64_t reserved[4];
} tern_pack_sequence_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pack_sequence_options tern_pack_sequence_defaults(void);

/* input's first lengths[i] steps of each sequence i of the batch. Differentiable. Errors:
 * TERN_ERR_ARGUMENT for lengths below 1, beyond the input, or rising. */
TERN_API tern_status tern_nn_pack_padded_sequence(tern_tensor *input, const int64_t *lengths, int n,
                                                  const tern_pack_sequence_options *options,
                                                  tern_packed_sequence *out);

typedef struct tern_pad_sequence_options {
    bool batch_first;
    double padding_value;
    int64_t total_length; /* default: that of the longest sequence, which -1 is */
    uint64_t reserved[4];
} tern_pad_sequence_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pad_sequence_options tern_pad_sequence_defaults(void);

/* (time, batch, *) in the order the sequences came in, padded; lengths (NULL: not wanted) gets that
 * of each, int64 on "cpu". Differentiable. */
TERN_API tern_tensor *tern_nn_pad_packed_sequence(const tern_packed_sequence *sequence,
                                                  const tern_pad_sequence_options *options,
                                                  tern_tensor **lengths);

/* n sequences (length, *) as one tensor (longest, n, *), padded at their ends. */
TERN_API tern_tensor *tern_nn_pad_sequence(tern_tensor *const *sequences, int n,
                                           const tern_pad_sequence_options *options);
/* The same packed. */
TERN_API tern_status tern_nn_pack_sequence(tern_tensor *const *sequences, int n,
                                           const tern_pack_sequence_options *options,
                                           tern_packed_sequence *out);

/* An RNN, LSTM or GRU over a packed sequence; in is {}, {h0} or {h0, c0}, and out gets the first k
 * of {h_n, c_n}, the sequences of the batch in the order they came in. */
TERN_API tern_status tern_nn_call_packed(tern_module *m, const tern_packed_sequence *x,
                                         tern_tensor *const *in, int n,
                                         tern_packed_sequence *output, tern_tensor **out, int k);

TERN_END_DECLS
#endif
