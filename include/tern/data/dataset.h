/* data/dataset.h -- data sets: items by number, or one after the other (torch.utils.data).
 *
 * An item is a list of tensors, such as an image and its label; all items have the same number of
 * them. A function that makes a data set returns one that the caller frees with tern_dataset_free,
 * or NULL after an error. A data set that is made of others keeps them, so the caller may free
 * those before. */
#ifndef TERN_DATA_DATASET_H
#define TERN_DATA_DATASET_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef struct tern_dataset tern_dataset;
typedef struct tern_transform tern_transform;

enum { TERN_MAX_ITEM = 16 }; /* tensors of an item */

/* Puts item i, 0 <= i < length, into item[count]: new tensors of the innermost scope. Workers call
 * the function at the same time, each for another item. In it the default device is "cpu",
 * gradients are not recorded, autocast is off, and random numbers are the item's own (loader.h). */
typedef tern_status (*tern_dataset_item_function)(tern_dataset *self, int64_t i,
                                                  tern_tensor **item);

/* Makes a data set of the program's own: length items of count tensors each. name stands in
 * messages; data belongs to the program and must live as long as the data set (PyTorch: a class
 * with __getitem__ and __len__). */
TERN_API tern_dataset *tern_data_dataset(const char *name, int64_t length, int count,
                                         tern_dataset_item_function item, void *data);

/* What a data set of the program's own may have. It has item, items or next. */
typedef struct tern_dataset_type {
    const char *name;
    tern_dataset_item_function item;
    /* Makes a batch of n items, batch[k] of shape (n, ...); random numbers are those of indices[0].
     * A loader without a collate function of its own calls items rather than item (PyTorch:
     * __getitems__). */
    tern_status (*items)(tern_dataset *self, const int64_t *indices, int64_t n,
                         tern_tensor **batch);
    /* An iterable data set has these two: rewind, which may be NULL, begins an epoch; next gives
     * the next item, or sets *end where there is none. One thread is in them at a time. */
    tern_status (*rewind)(tern_dataset *self, int64_t epoch);
    tern_status (*next)(tern_dataset *self, tern_tensor **item, bool *end);
    void (*free_data)(void *data); /* NULL: data stays the program's */
    uint64_t reserved[4];
} tern_dataset_type;

/* Makes a data set of a type, which is copied; length is -1 for an iterable one of unknown
 * length. */
TERN_API tern_dataset *tern_data_dataset_of(const tern_dataset_type *type, int64_t length,
                                            int count, void *data);
/* Makes a data set whose items come one after the other, and whose length is not known
 * (torch.utils.data.IterableDataset). */
TERN_API tern_dataset *tern_data_iterable_dataset(
    const char *name, int count, tern_status (*rewind)(tern_dataset *self, int64_t epoch),
    tern_status (*next)(tern_dataset *self, tern_tensor **item, bool *end), void *data);

/* Makes a data set of the rows of n tensors, which agree in their first size: item i is x[i] of
 * each. The tensors are kept, and may be on any device. */
TERN_API tern_dataset *tern_data_tensor_dataset_of(tern_tensor *const *tensors, int n);
/* Makes a data set of the items indices[n] of another, in that order. indices is copied. */
TERN_API tern_dataset *tern_data_subset(tern_dataset *dataset, const int64_t *indices, int64_t n);
/* Splits a random order of the items into parts[n]. Part k has lengths[k] items, or that share of
 * the items where the lengths add up to 1; items that are left over go one by one to the first
 * parts. The order depends on seed alone. After an error all parts are NULL. */
TERN_API tern_status tern_data_random_split(tern_dataset *dataset, const double *lengths, int n,
                                            uint64_t seed, tern_dataset **parts);
/* Makes a data set of the items of n data sets, one after the other. */
TERN_API tern_dataset *tern_data_concat_dataset_of(tern_dataset *const *datasets, int n);
/* Makes a data set of n data sets of one length, side by side: an item has the tensors of the
 * first, then those of the second (torch.utils.data.StackDataset). */
TERN_API tern_dataset *tern_data_stack_dataset_of(tern_dataset *const *datasets, int n);
/* Makes a data set of the items of another, with transform applied to tensor `which` of each item.
 * It owns transform, also when this fails. */
TERN_API tern_dataset *tern_data_transformed(tern_dataset *dataset, int which,
                                             tern_transform *transform);

/* Returns the number of items; -1 where it is not known, or after an error. */
TERN_API int64_t tern_dataset_length(const tern_dataset *dataset);
/* len(dataset) in PyTorch: another name of tern_dataset_length. */
#define tern_dataset_len tern_dataset_length
/* Returns how many tensors an item has; -1 after an error. */
TERN_API int tern_dataset_count(const tern_dataset *dataset);
/* Returns the data set's name; NULL after an error. */
TERN_API const char *tern_dataset_name(const tern_dataset *dataset);
/* Returns how many classes the labels are of: as many as have names; for IDX files and CIFAR the
 * largest label and one; 0 where that is not known. A transformed data set has the classes of the
 * one that it transforms. */
TERN_API int64_t tern_dataset_classes(const tern_dataset *dataset);
/* Returns the data that the data set was made with. */
TERN_API void *tern_dataset_data(const tern_dataset *dataset);
/* Puts item i into item[count]; the scope owns the tensors. Errors: TERN_ERR_ARGUMENT where there
 * is no item i. */
TERN_API tern_status tern_dataset_item(tern_dataset *dataset, int64_t i, tern_tensor **item);
/* Gives the data set up; NULL is fine. It ends with the last loader and data set that keep it. */
TERN_API void tern_dataset_free(tern_dataset *dataset);

#ifndef __cplusplus
#define tern_data_tensor_dataset(...)                                                              \
    tern_data_tensor_dataset_of(                                                                   \
        (tern_tensor *const[]){__VA_ARGS__},                                                       \
        (int)(sizeof((tern_tensor *const[]){__VA_ARGS__}) / sizeof(tern_tensor *)))
#define tern_data_concat_dataset(...)                                                              \
    tern_data_concat_dataset_of(                                                                   \
        (tern_dataset *const[]){__VA_ARGS__},                                                      \
        (int)(sizeof((tern_dataset *const[]){__VA_ARGS__}) / sizeof(tern_dataset *)))
#define tern_data_stack_dataset(...)                                                               \
    tern_data_stack_dataset_of(                                                                    \
        (tern_dataset *const[]){__VA_ARGS__},                                                      \
        (int)(sizeof((tern_dataset *const[]){__VA_ARGS__}) / sizeof(tern_dataset *)))
#endif

TERN_END_DECLS

#ifdef __cplusplus
template <class... T> inline tern_dataset *tern_data_tensor_dataset(T... tensors)
{
    tern_tensor *const list[] = {tensors...};
    return tern_data_tensor_dataset_of(list, static_cast<int>(sizeof...(tensors)));
}
template <class... D> inline tern_dataset *tern_data_concat_dataset(D... datasets)
{
    tern_dataset *const list[] = {datasets...};
    return tern_data_concat_dataset_of(list, static_cast<int>(sizeof...(datasets)));
}
template <class... D> inline tern_dataset *tern_data_stack_dataset(D... datasets)
{
    tern_dataset *const list[] = {datasets...};
    return tern_data_stack_dataset_of(list, static_cast<int>(sizeof...(datasets)));
}
#endif
#endif
