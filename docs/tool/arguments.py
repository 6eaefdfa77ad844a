"""arguments.py -- what arguments mean that are called the same everywhere, where a comment says nothing of its own.

WORDS: (name, type) -> text; a type of None is any. TENSORS: by header, what tensors without words of their own are."""

WORDS = {
    ("device", "const char *"): "the device; NULL is the default device",
    ("dtype", "tern_dtype"): "TERN_DTYPE_DEFAULT (0) is the default",
    ("shape", "tern_shape"): "TERN_SHAPE(2, 3)",
    ("dim", "int"): "a dim; a negative one counts from the end",
    ("dim0", "int"): "a dim; a negative one counts from the end",
    ("dim1", "int"): "a dim; a negative one counts from the end",
    ("dims", "tern_shape"): "TERN_DIMS(0, -1); a negative one counts from the end",
    ("keepdim", "bool"): "whether reduced dims stay, with size 1",
    ("y", "tern_scalar"): "a number, TERN_SCALAR(2); the name without _scalar takes a plain 2",
    ("a", "tern_scalar"): "a number, TERN_SCALAR(2), or a plain 2",
    ("value", "tern_scalar"): "a number, TERN_SCALAR(2), or a plain 2",
    ("kernel_size", "tern_shape"): "a size for each dim, or one for all: TERN_SHAPE(3)",
    ("output_size", "tern_shape"): "a size for each dim, or one for all: TERN_SHAPE(7)",
    ("normalized_shape", "tern_shape"): "the sizes of the last dims: TERN_SHAPE(64)",
    ("index", "tern_tensor *"): "integers",
    ("correction", "double"): "the divisor is n - correction; 1 is Bessel's correction",
    ("training", "bool"): "whether dropout is active: tern_nn_is_training(m) in a module",
    ("lr", "double"): "the learning rate, 0 or more",
    ("n", "int"): "the number of elements of the array before it",
    ("n_outputs", "int"): "their number",
    ("n_inputs", "int"): "their number",
    ("k", "int"): "the number of results that the array can hold",
    ("capacity", "int"): "the number of results that the array can hold",
    ("capacity", "int64_t"): "the number of results that the array can hold",
    ("out", "tern_values_indices *"): "values and indices (int64), both owned by the innermost scope",
    ("out", "tern_tensor *[2]"): "two results, owned by the innermost scope",
    ("out", "tern_tensor **"): "the results, owned by the innermost scope",
    ("pieces", "tern_tensor **"): "the results, owned by the innermost scope",
    ("user", "void *"): "a pointer that is passed to the function",
    ("path", "const char *"): "the path of a file or folder",
    ("folder", "const char *"): "its path",
    ("directory", "const char *"): "its path",
    ("root", "const char *"): "the folder of the data set",
    ("train", "bool"): "true for the training set, false for the test set",
    ("i", "int"): "from 0 on",
    ("visit", "tern_tensor_visit"): "called for each; any result but TERN_OK ends the iteration",
    ("norm", "tern_fft_norm"): "which transform is scaled: 0, the default, is PyTorch's \"backward\"",
    ("task", "tern_task"): "binary, multiclass or multilabel",
    ("periodic", "bool"): "true for spectra, false for a symmetric window",
    ("sym", "bool"): "symmetric; else periodic",
    ("block", None): "the block that the enter function returned",
    ("target", "tern_tensor *"): "the targets",
    ("weight", "tern_tensor *"): "NULL where the text allows it",
    ("bias", "tern_tensor *"): "NULL for none",
    ("on", "bool"): "true turns it on",
    ("enabled", "bool"): "true turns it on",
}

_ANY = "(*), of any shape"
TENSORS = {
    "tern/ops/elementwise.h": _ANY + "; several broadcast", "tern/ops/logic.h": _ANY + "; several broadcast",
    "tern/ops/special.h": _ANY + "; several broadcast", "tern/ops/activation.h": _ANY, "tern/ops/reduce.h": _ANY,
    "tern/ops/scan.h": _ANY, "tern/ops/softmax.h": _ANY, "tern/ops/copy.h": _ANY,
}


def meaning(name, kind, path):
    """What an argument is by its name, type and header; "" where that says nothing."""
    if path == "tern/nn.h" and name == "path":
        return "names with dots: \"layers.0.weight\""
    if path.endswith("pad.h") and name == "padding":
        return "(before, after) of the last dim, then of the dim before it, and so on"
    if kind.startswith("const tern_") and kind.endswith("_options *"):
        return "NULL for the defaults"
    found = WORDS.get((name, kind)) or WORDS.get((name, None), "")
    if not found and kind in ("tern_tensor *", "const tern_tensor *"):
        return TENSORS.get(path, "")
    return found
