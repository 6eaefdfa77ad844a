"""exchange.py FOLDER -- looks at tern's files in FOLDER (files.c says what is in them) and writes its own there,
with whatever of safetensors, numpy and torch is installed."""
import os
import sys

folder = sys.argv[1]
found = 0


def at(name):
    return os.path.join(folder, name)


def module(name):
    try:
        return __import__(name, fromlist=["x"])
    except ImportError:
        print("SKIP: no " + name)
        return None


numpy = module("numpy")
torch = module("torch")
safetensors = module("safetensors")

if numpy:
    found += 1
    x = numpy.load(at("tern.npy"))
    assert x.dtype == numpy.float64 and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    numpy.save(at("again.npy"), x)
    assert open(at("again.npy"), "rb").read() == open(at("tern.npy"), "rb").read(), "npy: other bytes"
    for name in ("tern.npz", "tern_packed.npz"):
        with numpy.load(at(name)) as z:
            assert sorted(z.files) == ["a", "b/c", "e"], z.files
            assert z["a"].tolist() == [0, 1, 2, 3, 4, 5, 6] and z["a"].dtype == numpy.int64
            assert z["b/c"].dtype == numpy.float16 and z["b/c"].shape == (2, 2)
            assert z["e"].shape == (0, 3)
    arrays = {"a": numpy.arange(6, dtype="<i4").reshape(2, 3), "big": numpy.arange(3, dtype=">f8"),
              "turned": numpy.asfortranarray(numpy.arange(6, dtype="<f4").reshape(2, 3)),
              "yes": numpy.array([True, False]), "one": numpy.float32(7)}
    numpy.savez(at("numpy.npz"), **arrays)
    numpy.savez_compressed(at("numpy_packed.npz"), **arrays)

if safetensors and numpy:
    from safetensors.numpy import load_file, save_file
    found += 1
    x = load_file(at("tern_numpy.safetensors"))
    assert x["w"].tolist() == [[0, 1, 2], [3, 4, 5]] and x["b"].dtype == bool
    with safetensors.safe_open(at("tern_numpy.safetensors"), "numpy") as f:
        assert f.metadata() == {"format": "pt"}
    save_file(x, at("again.safetensors"), metadata={"format": "pt"})
    same = open(at("again.safetensors"), "rb").read() == open(at("tern_numpy.safetensors"), "rb").read()
    assert same, "safetensors: other bytes"
    with safetensors.safe_open(at("snapshot/step-3.safetensors"), "numpy") as f:
        assert f.metadata()["format"] == "tern.snapshot" and f.metadata()["step"] == "3"
        assert f.get_tensor("model.weight").shape == (3, 4)
    save_file({"w": numpy.arange(6, dtype="<f4").reshape(2, 3), "n": numpy.arange(4)}, at("python.safetensors"))

if torch:
    found += 1
    m = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        m[0].weight.copy_(torch.arange(6.0).view(2, 3))
    torch.save(m.state_dict(), at("torch.pt"))
    optimizer = torch.optim.Adam(m.parameters())
    m(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    x = torch.arange(12.0).view(3, 4)
    torch.save({"optimizer": optimizer.state_dict(), "epoch": 3, "loss": 0.25, "name": "run", "turned": x.t(),
                "row": x[1], "half": x.half(), "bf": x.bfloat16(), "param": torch.nn.Parameter(x), "none": None},
               at("torch_all.pth"))
    torch.save(m, at("torch_module.pt"))
    torch.save(m.state_dict(), at("torch_old.pt"), _use_new_zipfile_serialization=False)

sys.exit(0 if found else 77)
