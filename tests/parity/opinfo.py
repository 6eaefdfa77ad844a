"""opinfo.py -- PyTorch's OpInfo without its test dependencies: which operations are taken from it, how they
are called, and the name of every argument."""
import inspect
import random
import sys
import types
import unittest
import warnings

warnings.simplefilter("ignore")

# torch.testing imports expecttest for one constant and a base class.
stand_in = types.ModuleType("expecttest")
stand_in.TestCase = unittest.TestCase
stand_in.ACCEPT = False
sys.modules.setdefault("expecttest", stand_in)

# OpInfo draws from sets, which newer Pythons refuse.
draw = random.sample
random.sample = lambda population, k: draw(
    sorted(population) if isinstance(population, (set, frozenset)) else population, k)

import torch
import torch.nn.functional as F
from torch.testing._internal.common_methods_invocations import op_db

# Left out: complex numbers, decompositions and special functions beyond a training vocabulary,
# what has no values to compare (empty, random), and Python-only forms.
EXCLUDED_PREFIXES = ("fft.", "special.", "masked.", "jiterator", "sparse.", "__r", "__and", "__or", "__xor")
LINALG = {"linalg." + name for name in
          ("cholesky", "solve_triangular", "vector_norm", "matrix_norm", "norm", "cross", "vecdot", "multi_dot",
           "matrix_power")}
EXCLUDED = set("""
    allclose bfloat16 bool byte char double float half int long short chalf complex view_as_real view_as_complex
    imag real polar angle conj conj_physical resolve_conj resolve_neg H mH mT T isreal stft istft i0 igamma
    igammac polygamma svd svd_lowrank pca_lowrank qr lu lu_unpack lu_solve symeig geqrf ormqr
    pinverse matrix_exp logdet cholesky_inverse to_sparse uniform randn randn_like rand_like randint_like
    empty empty_like new_empty new_empty_strided multinomial normal bernoulli segment_reduce histogram
    histogramdd nextafter to resize_ resize_as_ as_strided_scatter broadcast_shapes equal gradient
    triu_indices tril_indices native_batch_norm native_layer_norm narrow_copy
    nn.functional.rrelu nn.functional.upsample_bilinear nn.functional.upsample_nearest
    nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
    nn.functional.feature_alpha_dropout frexp nanquantile quantile lcm gcd
    """.split())


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, need_attn_weights=False):
    return F._scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, need_attn_weights, is_causal)[0]


# What is called in OpInfo's place, where that is a lambda around it.
CALLED = {
    "where": torch.where, "contiguous": torch.Tensor.contiguous, "sum_to_size": torch.Tensor.sum_to_size, "unfold": torch.Tensor.unfold,
    "new_zeros": torch.Tensor.new_zeros, "new_ones": torch.Tensor.new_ones, "new_full": torch.Tensor.new_full,
    "nn.functional.dropout": F.dropout, "nn.functional.dropout2d": F.dropout2d,
    "nn.functional.dropout3d": F.dropout3d, "nn.functional.embedding": F.embedding,
    "nn.functional.embedding_bag": F.embedding_bag,
    "nn.functional._scaled_dot_product_attention": attention,
}
RENAMED = {"__getitem__": "index",
           "nn.functional._scaled_dot_product_attention": "nn.functional.scaled_dot_product_attention"}
RANDOM = {"nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
          "nn.functional._scaled_dot_product_attention"}
# Functions of any number of tensors: one list here.
VARIADIC = {"meshgrid", "broadcast_tensors", "cartesian_prod", "block_diag", "einsum"}
# Names that neither a signature nor a schema gives.
NAMES = {
    "sum_to_size": ["self", "size"], "unique": ["input", "sorted", "return_inverse", "return_counts", "dim"],
    "unique_consecutive": ["input", "return_inverse", "return_counts", "dim"], "contiguous": ["self"],
    "polygamma": ["input", "n"], "linalg.det": ["A"], "tensordot": ["a", "b", "dims"], "eye": ["n", "m"], "nonzero": ["input"],
}


def operations(also=()):
    """(OpInfo, its name here) of what is in scope and of the names also, in a fixed order."""
    for op in op_db:
        if op.name not in also and (op.name.startswith(EXCLUDED_PREFIXES) or op.name in EXCLUDED):
            continue
        if op.name.startswith("linalg.") and op.name not in LINALG and op.name not in also:
            continue
        if op.variant_test_name == "decomposed":
            continue
        if not any(dtype in op.dtypes for dtype in (torch.float32, torch.int64)):
            continue
        yield op, RENAMED.get(op.name, op.name)


def is_sum(op):
    """Whether every element of the result is a long sum, whose rounding error does not go with its own size."""
    return op.name.startswith(("nn.functional.conv", "nn.functional.bilinear", "linalg.multi_dot", "matrix_power")) \
        or op.name in ("matmul", "mm", "bmm", "addmm", "addbmm", "baddbmm", "einsum", "tensordot", "cdist")


def is_sound(op, bound):
    """Whether PyTorch's own result can be relied on: its vector loops of linspace truncate integers twice,
    where its other devices do not; and unique without sorting gives the order of a hash table."""
    if op.name == "unique" and not bound.get("sorted", True) and bound.get("dim") is None:
        return False
    return not (op.name in ("linspace", "logspace") and not bound.get("dtype", torch.float32).is_floating_point)


def callee(op):
    return op.op if getattr(op, "has_names", False) else CALLED.get(op.name, op.op)


def positional(op, sample):
    """The sample's arguments as the public function takes them, and whether its result is not random."""
    args, kwargs = [sample.input, *sample.args], dict(sample.kwargs)
    if op.name in ("nn.functional.embedding", "nn.functional.embedding_bag"):
        args[0], args[1] = args[1], args[0]
    if op.name == "where":
        args[0], args[1] = args[1], args[0]
    if "adaptive" in op.name and len(args) > 1 and isinstance(args[1], (tuple, list)):  # None: the input's own size
        sizes = args[0].shape[-len(args[1]):]
        args[1] = tuple(n if wanted is None else wanted for wanted, n in zip(args[1], sizes))
    if op.name == "nn.functional._scaled_dot_product_attention":
        for i in range(5, len(args)):
            kwargs[("need_attn_weights", "is_causal")[i - 5]] = args[i]
        del args[5:]
        kwargs.pop("need_attn_weights", None)
    if op.name in RANDOM:
        p = args[4] if len(args) > 4 else kwargs.get("p", kwargs.get("dropout_p"))
        if p is None and op.name != "nn.functional._scaled_dot_product_attention":
            p = 0.5
        if len(args) in (2, 3):
            p = args[1] if op.name.startswith("nn.functional.dropout") else p
        training = kwargs.get("training", True)
        if p not in (None, 0.0, 1.0, 0, 1) and training:
            return None
    return args, kwargs


def fits(value, kind):
    kind = str(kind)
    if kind.startswith("Optional["):
        return value is None or fits(value, kind[9:-1])
    if kind == "Tensor":
        return isinstance(value, torch.Tensor)
    if kind in ("int", "SymInt"):  # which types, layouts and so on are, too
        return isinstance(value, (int, torch.dtype, torch.layout, torch.memory_format)) and not isinstance(value, bool)
    if kind in ("List[int]", "List[SymInt]"):
        return isinstance(value, int) or (isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value))
    if kind == "float":
        return isinstance(value, (int, float))
    if kind == "List[float]":
        return isinstance(value, (float, list, tuple))
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, float, bool))
    if kind == "str":
        return isinstance(value, str)
    if kind.startswith("List["):
        return isinstance(value, (list, tuple)) and all(v is None or isinstance(v, torch.Tensor) for v in value)
    return True


def bind_schema(name, args, kwargs, loose=False):
    """Names from the operator's schemas: the first overload that takes these arguments (loose: that has so
    many)."""
    for schema in torch._C._jit_get_schemas_for_operator("aten::" + name):
        if "out" in schema.overload_name or "name" in schema.overload_name or "Dimname" in str(schema):
            continue
        plain = [a for a in schema.arguments if not a.kwarg_only]
        known = {a.name: a for a in schema.arguments}
        if len(args) > len(plain):
            # size=(2, 3) may be given as two numbers
            lists = [a for a in plain if "List[int]" in str(a.type) or "SymInt" in str(a.type)]
            if len(lists) != 1 or plain[-1] is not lists[0]:
                continue
            args_here = args[:len(plain) - 1] + [tuple(args[len(plain) - 1:])]
        else:
            args_here = args
        bound = {a.name: v for a, v in zip(plain, args_here)}
        given = {("self" if k == "input" else k): v for k, v in kwargs.items()}
        if set(given) & set(bound) or set(given) - set(known):
            continue
        bound.update(given)
        if (loose or all(fits(v, known[k].type) for k, v in bound.items())) and all(
                a.name in bound or a.has_default_value() for a in schema.arguments):
            return {("input" if k == "self" else k): v for k, v in bound.items()}
    return None


def tensor_list(value):
    return (isinstance(value, (list, tuple)) and len(value) > 0
            and all(isinstance(v, torch.Tensor) for v in value))


def bind(op, args, kwargs, strict=True):
    """The arguments by name, or None. strict: of the right kinds."""
    function = callee(op)
    if getattr(op, "has_names", False):
        return dict(kwargs)
    if op.name == "tensordot" and len(args) == 2 and isinstance(kwargs.get("dims"), (tuple, list)):
        return {"a": args[0], "b": args[1], "dims_self": list(kwargs["dims"][0]), "dims_other": list(kwargs["dims"][1])}
    if op.name == "__getitem__":
        key = args[1][0] if isinstance(args[1], (tuple, list)) and len(args[1]) == 1 else args[1]
        return {"input": args[0], "index": key} if isinstance(key, torch.Tensor) else None
    if op.name == "einsum":
        return {"equation": args[1] if isinstance(args[1], str) else args[0],
                "operands": list(args[0] if tensor_list(args[0]) else args[1:])}
    if op.name in VARIADIC:
        tensors = args[0] if tensor_list(args[0]) else args
        return {"tensors": list(tensors), **kwargs}
    if op.name.startswith("atleast"):
        return None if tensor_list(args[0]) or len(args) > 1 else {"input": args[0]}
    if op.name in NAMES:
        names = NAMES[op.name]
        if len(args) > len(names):
            args = args[:len(names) - 1] + [tuple(args[len(names) - 1:])]
        return {("input" if n == "self" else n): v for n, v in [*zip(names, args), *kwargs.items()]}
    if isinstance(function, types.FunctionType) and op.name.startswith("nn.functional."):
        try:
            signature = inspect.signature(getattr(F, "_" + function.__name__, function)
                                          if function.__name__ == "fn" else function)
            if "args" in signature.parameters:
                signature = inspect.signature(getattr(F, "_" + op.name.split(".")[-1]))
            return dict(signature.bind(*args, **kwargs).arguments)
        except (TypeError, AttributeError):
            pass
    short = op.name.split(".")[-1]
    for loose in (False, True) if strict is False else (False,):
        for name in (short, op.name.replace(".", "_"), op.name, getattr(function, "__name__", short)):
            bound = bind_schema(name, args, kwargs, loose)
            if bound is not None:
                return bound
    try:
        return {("input" if k == "self" else k): v
                for k, v in inspect.signature(function).bind(*args, **kwargs).arguments.items()}
    except (TypeError, ValueError):
        return None
