#!/usr/bin/env python3
"""torch_files.py FOLDER -- files as PyTorch has written them since its beginning, and beside each NAME.safetensors with the tensors
that PyTorch reads there; expect.txt has a line a file: NAME, what is wanted (test_torch_files.c), a minus, what it is.

Made with PyTorch 2.15, NumPy and safetensors (PyPI)."""
import argparse
import collections
import io
import json
import os
import pickle
import struct
import sys
import tarfile
import warnings
import zipfile

import numpy as np
import torch
from safetensors.torch import save_file

warnings.filterwarnings("ignore")
EXPECT = []
SYSTEM = dict(protocol_version=1001, little_endian=True, type_sizes=dict(short=2, int=4, long=4))


def expect(name, want, what, tensors=None):
    if tensors is not None:
        save_file({k: v.detach().contiguous().clone() for k, v in tensors.items()}, name + ".safetensors")
    EXPECT.append("\t".join([name, want, "-", what]))


class Id:
    """What a persistent id stands for."""

    def __init__(self, value):
        self.value = value


class Pickler(pickle._Pickler):
    def persistent_id(self, o):
        return o.value if isinstance(o, Id) else None


class Rebuild:
    def __init__(self, *args):
        self.args = args + (False, collections.OrderedDict())

    def __reduce__(self):
        return torch._utils._rebuild_tensor_v2, self.args


def stream(name, value, storages, system=SYSTEM, cut=0):
    f = io.BytesIO()
    for o in (0x1950A86A20F9469CFC6C, 1001, system):
        pickle.dump(o, f, 2)
    Pickler(f, 2).dump(value)
    pickle.dump([k for k, _ in storages], f, 2)
    for _, a in storages:
        f.write(struct.pack("<q", a.size) + a.tobytes())
    data = f.getvalue()
    with open(name, "wb") as to:
        to.write(data[: len(data) - cut])


def streams(net):
    torch.save(net.state_dict(), "stream.pt", _use_new_zipfile_serialization=False)
    expect("stream.pt", "same", "a state dict before 1.6", net.state_dict())
    kept = torch.serialization.get_source_lines_and_file

    def no_source(*_):
        raise OSError

    torch.serialization.get_source_lines_and_file = no_source
    torch.save(net, "stream_module.pt", _use_new_zipfile_serialization=False)
    torch.serialization.get_source_lines_and_file = kept
    expect("stream_module.pt", "same", "a whole module before 1.6", net.state_dict())
    a = np.arange(6, dtype=np.float32)
    whole = Id(("storage", torch.FloatStorage, "94001", "cpu", 6, None))
    part = Id(("storage", torch.FloatStorage, "94001", "cuda:1", 6, ("94009", 2, 3)))
    value = {"a": Rebuild(whole, 0, (2, 3), (3, 1)), "v": Rebuild(part, 1, (2,), (1,))}
    x = torch.from_numpy(a)
    stream("stream_view.pt", value, [("94001", a)])
    expect("stream_view.pt", "same", "a storage that is a part of another, before 0.4", {"a": x.reshape(2, 3), "v": x[3:5]})
    stream("stream_cut.pt", value, [("94001", a)], cut=1)
    expect("stream_cut.pt", "refused [94001]", "the last byte is missing")
    stream("stream_big.pt", value, [("94001", a)], system=dict(SYSTEM, little_endian=False))
    expect("stream_big.pt", "refused [big-endian]", "the bytes are in the other order")


def old_tar():
    a = np.arange(12, dtype=np.float32)
    s, t, p = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pickle.dump(1, s, 2)
    pickle.dump((7, "cpu", torch.FloatStorage), s, 2)
    s.write(struct.pack("<q", a.size) + a.tobytes())
    pickle.dump([], s, 2)
    pickle.dump(2, t, 2)
    for key, size, stride, at in ((1, (3, 4), (4, 1), 0), (2, (4, 2), (1, 4), 4)):
        pickle.dump((key, 7, torch.FloatTensor), t, 2)
        t.write(struct.pack("<ii2q2qq", 2, 0, *size, *stride, at))
    Pickler(p, 2).dump(collections.OrderedDict(weight=Id("1"), part=Id("2")))
    with tarfile.open("tar.pt", "w", format=tarfile.USTAR_FORMAT) as f:
        for n, b in (("sys_info", pickle.dumps(SYSTEM, 2)), ("pickle", p.getvalue()), ("tensors", t.getvalue()), ("storages", s.getvalue())):
            i = tarfile.TarInfo(n)
            i.size = len(b)
            f.addfile(i, io.BytesIO(b))
    x = torch.from_numpy(a)
    expect("tar.pt", "same", "a tar, before 0.1.10", {"weight": x.reshape(3, 4), "part": x[4:].reshape(2, 4).t()})


def zips(net):
    c = torch.randn(4, dtype=torch.complex64)
    imag = c.conj().imag
    torch.save({"imag": imag, "ids": torch.arange(5).expand(3, -1)}, "negative.pt")
    expect("negative.pt", "same", "the negative bit, and strides of 0", {"imag": imag.resolve_neg(), "ids": torch.arange(5).expand(3, -1)})
    w = torch.randn(2)
    torch.save({"c": c.conj(), "w": w}, "conjugated.pt")
    expect("conjugated.pt", "but [c]", "the conjugate bit", {"w": w})
    q = torch.quantize_per_tensor(torch.randn(2, 4), 0.1, 3, torch.qint8)
    torch.save({"q": q, "w": w}, "quantized.pt")
    expect("quantized.pt", "but [q]", "a quantized tensor", {"w": w})
    kinds = {"complex32": torch.tensor([1 + 2j, 3]).to(torch.complex32), "e8m0": torch.ones(3).to(torch.float8_e8m0fnu),
             "e2m1": torch.zeros(2, 3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
             "four": torch.quantize_per_channel(torch.ones(2, 4), torch.ones(2), torch.zeros(2), 0, torch.quint4x2),
             "two": torch.quantize_per_channel(torch.ones(2, 4), torch.ones(2), torch.zeros(2), 0, torch.quint2x4),
             "turned": torch.zeros(2, 3, dtype=torch.complex128).t()}
    torch.save({**kinds, "w": w}, "dtypes.pt")
    expect("dtypes.pt", "but [complex32]", "types that tern does not have", {"w": w})
    torch.save({"args": argparse.Namespace(lr=1e-3), "best": np.float64(0.75), "w": w}, "protocol4.pt", pickle_protocol=4)
    expect("protocol4.pt", "same", "objects beside a tensor, protocol 4", {"w": w})
    for protocol in 0, 1, 3, 5:
        name = "stream_protocol%d.pt" % protocol
        torch.save({"w": w}, name, pickle_protocol=protocol, _use_new_zipfile_serialization=False)
        expect(name, "same", "before 1.6 by protocol %d" % protocol, {"w": w})
    torch.save({"model": net}, "module.pt")
    expect("module.pt", "same", "a whole module", {"model." + k: v for k, v in net.state_dict().items()})


def rewrite(name, drop, change):
    """Without the programs in it, which hold paths."""
    with zipfile.ZipFile(name) as z:
        entries = [(n, z.read(n)) for n in z.namelist() if not n.endswith(drop)]
    with zipfile.ZipFile(name, "w") as out:
        for n, b in entries:
            out.writestr(n, change(n, b))


def bombs():
    """Lists and lists of them, and values without an end, which pack to a thousandth."""
    text = (16 << 20) + (900 << 10)
    for name, data, said in (("bomb_values.pt", b"\x80\2" + b"]" * (8 << 20) + b".", "data.pkl"),
                             ("bomb_size.pt", b"\x80\2" + b"N" * (40 << 20) + b".", "data.pkl"),
                             ("bomb_stack.pt", b"\x80\2N" + b"2" * (text // 2) + b"(" * (text // 2) + b".", "far more values"),
                             ("bomb_memo.pt", b"\x80\2X" + struct.pack("<I", text) + bytes(text) + b"r" + struct.pack("<I", text) + b".",
                              "far more values")):
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
            z.writestr(zipfile.ZipInfo("bomb/data.pkl"), data, zipfile.ZIP_DEFLATED)
        expect(name, "refused [%s]" % said, "a few packed bytes that are a large pickle")


def compiled(net):
    torch.jit.save(torch.jit.script(net), "script.pt")
    rewrite("script.pt", ".debug_pkl", lambda n, b: b"" if "/code/" in n else b)
    expect("script.pt", "same", "TorchScript", net.state_dict())
    torch.export.save(torch.export.export(net, (torch.ones(2, 3),)), "exported.pt2")
    rewrite("exported.pt2", "sample_inputs/model.pt", lambda n, b: b"{}" if n.endswith("models/model.json") else b)
    expect("exported.pt2", "same", "torch.export", net.state_dict())


def folders():
    m = torch.nn.Linear(3, 2).state_dict()
    where = {}
    os.makedirs("shards", exist_ok=True)
    for i, (k, v) in enumerate(m.items()):
        where[k] = "pytorch_model-%05d-of-00002.bin" % (i + 1)
        torch.save({k: v}, "shards/" + where[k], _use_new_zipfile_serialization=i == 0)
    with open("shards/pytorch_model.bin.index.json", "w") as f:
        json.dump({"metadata": {"total_size": 32}, "weight_map": where}, f)
    expect("shards", "same", "shards of torch.save, one of them from before 1.6", m)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).eval()
    streams(net)
    old_tar()
    zips(net)
    compiled(net)
    folders()
    bombs()
    with open("expect.txt", "w") as f:
        f.write("\n".join(EXPECT) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
