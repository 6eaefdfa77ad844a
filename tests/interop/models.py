"""models.py FOLDER NAME...: tern's models in FOLDER as transformers and PEFT read them, and theirs written beside."""
import glob, json, os, sys
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

try:
    import peft
except ImportError:
    peft = None
    print("SKIP: no peft: no adapter of tern's was read by it")
torch.set_num_threads(1)
hf.logging.set_verbosity_error()
folder, names, failures = sys.argv[1], sys.argv[2:], 0


def at(*names):
    return os.path.join(folder, *names)


def model_of(name):
    config = json.load(open(at(name, "config.json")))
    kind = getattr(hf, config["architectures"][0])
    eager = dict(attn_implementation="eager") if config["model_type"].startswith("gemma2") else {}
    m, report = kind.from_pretrained(at(name), dtype=torch.float32, output_loading_info=True, **eager)
    odd = {k: v for k, v in report.items() if v and k != "error_msgs"}
    assert not odd, (name, odd)
    return m.eval()


def logits_of(m, batch):
    with torch.no_grad():
        batch = {k: v for k, v in batch.items() if k != "labels" or m.config.is_encoder_decoder}
        out = m(**batch)
    return out.logits_per_image if "logits_per_image" in out else out.logits


def compare(name, m):
    global failures
    said = load_file(at(name + ".safetensors"))
    batch = {k[6:]: v for k, v in said.items() if k.startswith("input.")}
    own = logits_of(m, batch)
    apart = ((own - said["logits"]).abs().max() / said["logits"].abs().max()).item()
    failures += not apart <= 1e-5
    print("%s%s: %.1e apart" % ("" if apart <= 1e-5 else "FAIL ", name, apart))
    return batch


def change(m, which):
    """Other numbers than those that were read."""
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in m.named_parameters():
            if which in name: p.add_(torch.randn(p.shape, generator=g) * 0.02)


def write_back(name, m, batch):
    m.save_pretrained(at(name + "-back"))
    save_file({"logits": logits_of(m, batch).contiguous(), **{"input." + k: v for k, v in batch.items()}},
              at(name + "-back.safetensors"))


for name in names:
    m = model_of(name)
    batch = compare(name, m)
    change(m, "weight")
    write_back(name, m, batch)
    for where in sorted(glob.glob(at(name + "-[ld]ora"))) if peft else []:
        adapter = os.path.basename(where)
        m = peft.PeftModel.from_pretrained(model_of(name), where).eval()
        compare(adapter, m)
        change(m, "lora_")
        write_back(adapter, m, batch)
sys.exit(failures != 0)
