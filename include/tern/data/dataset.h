/* data/dataset.h -- data sets: items by number, or one after the other (torch.utils.data).
 *
 * An item is a list of tensors, as many for every item: an image and its label. Functions that make
 * a data set give one to be freed with tern_dataset_free, NULL after an error; those that are made
 * of others keep them, so that these may be freed before. */
#ifndef TERN_DATA_DATASET_H
#define TERN_DATA_DATASET_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef struct tern_dataset tern_dataset;
typedef struct tern_transform tern_transform;

enum { TERN_MAX_ITEM = 16 }; /* tensors of an item */

/* Put item i, 0 <= i < length, into item[count]: new tensors of the innermost scope. Workers call
 * it at the same time, each for an item of its own. In it the default device is "cpu", no gradients
 * are recorded, autocast is off, and random numbers are the item's own (loader.h). */
typedef tern_status (*tern_dataset_item_function)(tern_dataset *self, int64_t i,
                                                  tern_tensor **item);

/* One's own: length items of count tensors each. name stands in messages; data is the program's and
 * must live as long as the data set (PyTorch: a class with __getitem__ and __len__). */
TERN_API tern_dataset *tern_data_dataset(const char *name, int64_t length, int count,
                                         tern_dataset_item_function item, void *data);

/* All that one's own data set may have. Either item or items is there, or next. */
typedef struct tern_dataset_type {
    const char *name;
    tern_dataset_item_function item;
    /* n items as a batch, batch[k] of shape (n, ...); random numbers are those of indices[0].
     * Loaders prefer it where they have no collate function of their own (PyTorch:
     * __getitems__). */
    tern_status (*items)(tern_dataset *self, const int64_t *indices, int64_t n,
                         tern_tensor **batch);
    /* Of an iterable one: begin an epoch; the next item, or *end = true where there is none. One
     * thread is in them at a time. rewind may be NULL. */
    tern_status (*rewind)(tern_dataset *self, int64_t epoch);
    tern_status (*next)(tern_dataset *self, tern_tensor **item, bool *end);
    void (*free_data)(void *data); /* NULL: data stays the program's */
    uint64_t reserved[4];
} tern_dataset_type;

/* The same of a type, which is copied; length is -1 for an iterable one of unknown length. */
TERN_API tern_dataset *tern_data_dataset_of(const tern_dataset_type *type, int64_t length,
                                            int count, void *data);
/* Items that come one after the other, of unknown number (torch.utils.data.IterableDataset). */
TERN_API tern_dataset *tern_data_iterable_dataset(
    const char *name, int count, tern_status (*rewind)(tern_dataset *self, int64_t epoch),
    tern_status (*next)(tern_dataset *self, tern_tensor **item, bool *end), void *data);

/* Rows of tensors, which agree in their first size: item i is x[i] of each. Kept, on any device. */
TERN_API tern_dataset *tern_data_tensor_dataset_of(tern_tensor *const *tensors, int n);
/* The items indices[n] of another, in that order. */
TERN_API tern_dataset *tern_data_subset(tern_dataset *dataset, const int64_t *indices, int64_t n);
/* Parts of a random order of its items into parts[n]: of lengths[k] items, or of that share of them
 * where the lengths add up to 1; what is left over goes one by one to the first parts. The order
 * depends on seed alone. On failure parts are NULL. */
TERN_API tern_status tern_data_random_split(tern_dataset *dataset, const double *lengths, int n,
                                            uint64_t seed, tern_dataset **parts);
/* One after the other. */
TERN_API tern_dataset *tern_data_concat_dataset_of(tern_dataset *const *datasets, int n);
/* Items of several data sets of one length, side by side: the tensors of the first, then those of
 * the second (torch.utils.data.StackDataset). */
TERN_API tern_dataset *tern_data_stack_dataset_of(tern_dataset *const *datasets, int n);
/* Its items with transform applied to tensor `which` of each. Owns transform, also when it
 * fails. */
TERN_API tern_dataset *tern_data_transformed(tern_dataset *dataset, int which,
                                             tern_transform *transform);

/* The number of items; -1 where it is not known, or after an error. */
TERN_API int64_t tern_dataset_length(const tern_dataset *dataset);
/* How many tensors an item has; -1 after an error. */
TERN_API int tern_dataset_count(const tern_dataset *dataset);
/* Its name; NULL after an error. */
TERN_API const char *tern_dataset_name(const tern_dataset *dataset);
/* How many classes its labels are of: as many as have names, of IDX files and CIFAR the largest
 * label and one; 0 where that is not known. A transformed one has those of what it transforms. */
TERN_API int64_t tern_dataset_classes(const tern_dataset *dataset);
/* The data that it was made with. */
TERN_API void *tern_dataset_data(const tern_dataset *dataset);
/* Item i into item[count], owned by the scope. Errors: TERN_ERR_ARGUMENT for an i that is none. */
TERN_API tern_status tern_dataset_item(tern_dataset *dataset, int64_t i, tern_tensor **item);
/* Gives it up; NULL is fine. It ends with the last loader and data set that keep it. */
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
