/* data/datasets.h -- data sets of files (torchvision.datasets, and others of the field).
 *
 * The caller frees a data set with tern_dataset_free; NULL after an error. The contents of a file,
 * not its name, decide how it is read, and nothing in a file is trusted: a malformed file is
 * TERN_ERR_IO, whose message names the file and the place in it. Images and gzip need libraries
 * that are opened at run time (libturbojpeg.so.0, libpng16.so.16, libz.so.1); where one is missing,
 * TERN_ERR_UNSUPPORTED names it. */
#ifndef TERN_DATA_DATASETS_H
#define TERN_DATA_DATASETS_H
#include <tern/data/dataset.h>

TERN_BEGIN_DECLS

/* ---- IDX: MNIST and its like ----------------------------------------------------------------- */

/* Makes the data set of MNIST in root or root/MNIST/raw, whose files may end in .gz: image (1, 28,
 * 28) uint8, label int64. */
TERN_API tern_dataset *tern_datasets_mnist(const char *root, bool train);
/* Makes the same of FashionMNIST in root or root/FashionMNIST/raw. */
TERN_API tern_dataset *tern_datasets_fashion_mnist(const char *root, bool train);
/* Makes the data set of a split of EMNIST ("byclass", "bymerge", "balanced", "letters", "digits",
 * "mnist") in root or root/EMNIST/raw. Images are as they lie in the file: transposed. */
TERN_API tern_dataset *tern_datasets_emnist(const char *root, const char *split, bool train);
/* Makes a data set of any two IDX files: item (1, ...) of images, label int64; labels NULL: images
 * alone. */
TERN_API tern_dataset *tern_datasets_idx(const char *images, const char *labels);
/* Reads an IDX file, also one packed by gzip, as a tensor on the cpu that the scope owns. The dtype
 * is that of the file. */
TERN_API tern_tensor *tern_read_idx(const char *path);

/* ---- CIFAR, in its binary version ------------------------------------------------------------ */

/* Makes the data set of CIFAR-10 in root or root/cifar-10-batches-bin: image (3, 32, 32) uint8,
 * label int64. */
TERN_API tern_dataset *tern_datasets_cifar10(const char *root, bool train);
/* Makes the data set of CIFAR-100 in root or root/cifar-100-binary; the label is the fine one. */
TERN_API tern_dataset *tern_datasets_cifar100(const char *root, bool train);

/* ---- text ------------------------------------------------------------------------------------ */

typedef struct tern_csv_options {
    char separator;    /* default ',' */
    bool no_header;    /* the first line is a row, columns are "0", "1", ... */
    bool empty_is_nan; /* an empty number is NaN; else an error */
    const char *const
        *columns; /* names of those that are values, in this order; NULL: all but label */
    int n_columns;
    const char *label; /* the column of the second tensor; NULL: there is none */
    /* Words that are NaN in a column of values, as pandas's na_values; with empty_is_nan also those
     * that pandas has by itself (NA, N/A, null, None, ...). */
    const char *const *na_values;
    int n_na_values;
    char comment;   /* what stands behind it in a line is left out; '\0': nothing */
    char thousands; /* within a number's digits it is left out, as ',' in "1,000"; '\0': nothing */
    char decimal;   /* default '.' */
    int64_t skiprows; /* lines at the beginning of the file that are passed over */
    uint64_t reserved[4];
} tern_csv_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_csv_options tern_csv_defaults(void);
/* Makes the data set of a table of numbers (RFC 4180), also one packed by gzip or zstd: values
 * (columns) float32, and the label int64. The label is the number in its column where all of these
 * are whole numbers, else the number of its text among all texts, sorted. Lines end with LF, CR LF
 * or CR (pandas.read_csv). */
TERN_API tern_dataset *tern_datasets_csv(const char *path, const tern_csv_options *options);
/* Makes a data set whose items are a file's lines: the bytes (n) uint8 of each, without the end of
 * line. */
TERN_API tern_dataset *tern_datasets_text_lines(const char *path);
/* Makes the data set of a flat file of dtype (TERN_I32, TERN_I64, TERN_U8; TERN_DTYPE_DEFAULT:
 * unsigned 16 bits), of any size: item i is x = t[i : i + block] and y = t[i + 1 : i + block + 1],
 * int64. */
TERN_API tern_dataset *tern_datasets_tokens(const char *path, tern_dtype dtype, int64_t block);

/* ---- images ---------------------------------------------------------------------------------- */

typedef struct tern_image_options {
    int64_t max_pixels; /* default 2^28: an image of more is an error */
    /* JPEGs whose shorter edge stays at least this long are decoded at 1/2, 1/4 or 1/8, which is
     * faster; 0: as they are. */
    int64_t min_edge;
    bool keep_16_bits; /* a PNG of 16 bits is uint16; other images stay uint8 */
    uint64_t reserved[4];
} tern_image_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_image_options tern_image_defaults(void);
/* Decodes a PNG, JPEG, WebP or BMP of n bytes to RGB (3, H, W), uint8, on the cpu
 * (torchvision.io.decode_image). Palettes, greys and a JPEG's CMYK (as Pillow's convert("RGB"))
 * become colours, 16 bits become 8, alpha is dropped, and EXIF's orientation is ignored. With
 * keep_16_bits a PNG of 16 bits is uint16, in 0 .. 65535, as torchvision has it; uint16 is only
 * stored, so convert it before computing with it: tern_div(tern_to_dtype(x, TERN_F32), 65535). */
TERN_API tern_tensor *tern_image_decode(const void *bytes, size_t n,
                                        const tern_image_options *options);
/* Decodes an image file in the same way (torchvision.io.read_image). */
TERN_API tern_tensor *tern_image_read(const char *path, const tern_image_options *options);

typedef struct tern_image_folder_options {
    bool allow_empty; /* a class without an image is no error */
    tern_image_options image;
    uint64_t reserved[4];
} tern_image_folder_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_image_folder_options tern_image_folder_defaults(void);
/* Makes the data set of a folder of images: the folders in root, sorted, are the classes; the .jpg,
 * .jpeg, .png, .webp and .bmp files below each, sorted, are its images. Item: image (3, H, W)
 * uint8, label int64. */
TERN_API tern_dataset *tern_datasets_image_folder(const char *root,
                                                  const tern_image_folder_options *options);

/* ---- tar shards, as webdataset lays them out ------------------------------------------------- */

/* Makes the data set of the samples of paths[n_paths]: files whose names agree up to the first
 * point are one sample. Tensor k of an item is the file that ends in one of fields[k],
 * "jpg;jpeg;png": images are (3, H, W) uint8; cls, a number, is int64; other files are their bytes,
 * uint8. A sample without one of the fields is left out. The archives are indexed when they are
 * opened, and items are read from them directly; an archive that is packed by gzip or zstd is
 * unpacked into memory. */
TERN_API tern_dataset *tern_datasets_tar(const char *const *paths, int n_paths,
                                         const char *const *fields, int n_fields,
                                         const tern_image_options *options);

/* ---- classes --------------------------------------------------------------------------------- */

/* Returns how many classes of names the labels of an image folder or a table have; 0 for other data
 * sets. */
TERN_API int64_t tern_datasets_class_count(const tern_dataset *dataset);
/* Returns the name of a class; NULL where there is none. The text lives as long as the data set. */
TERN_API const char *tern_datasets_class_name(const tern_dataset *dataset, int64_t i);

TERN_END_DECLS
#endif
