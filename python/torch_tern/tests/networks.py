"""One training step of networks on a device beside the cpu: the loss, the gradients, and what ran
on the cpu.

    networks.py [--device tern:0] [--sets plain,torchvision,transformers] [--only NAME,...]
                [--table FILE]

Dropout is off, since two devices draw different numbers. Fails where a loss or the gradients
differ, or where an operation runs on the cpu. A set whose package is not installed is skipped, and
said so. The error of gradients is the norm of the difference of all of them over their norm. Batch
norm over a few elements multiplies roundings, so that float32 of any two devices differs in some
networks: there the step is compared in float64, with a limit of its own, and float32
with a wide one, which finds gradients that are wrong."""
import argparse
import copy
import pathlib
import sys
import warnings

import networks_list

LIMIT = 1e-4
LIMIT_OF_DOUBLE = 1e-7
LIMIT_OF_ROUNDED = 1e-3, 0.5  # of float32's loss and gradients in such a network; wrong gradients are 1 off


def without_dropout(model):
    import torch
    for module in model.modules():
        name = type(module).__name__
        if isinstance(module, torch.nn.Dropout) or hasattr(module, "p") and "Drop" in name or \
                "Stoch" in name:
            module.p = 0.0
        for attribute in ("dropout", "attention_dropout", "activation_dropout", "layerdrop",
                          "encoder_layerdrop", "dropout_rate", "drop_prob"):
            if isinstance(getattr(module, attribute, None), float):
                setattr(module, attribute, 0.0)
    return model


def gradients(model):
    return {name: p.grad.detach().cpu().double() for name, p in model.named_parameters()
            if p.grad is not None}


def distance(a, b):
    if a.keys() != b.keys():
        return float("inf")
    return (sum((a[k] - b[k]).pow(2).sum() for k in a) /
            max(sum(a[k].pow(2).sum() for k in a), 1e-300)) ** 0.5


def step(model, loss_of, device):
    import torch
    model.zero_grad(set_to_none=True)
    torch.manual_seed(3)
    loss = loss_of(model, device)
    loss.backward()
    return loss.item(), gradients(model)


def double(model, loss_of, device):
    """The loss and the gradients in float64."""
    import torch
    return step(copy.deepcopy(model).double().to(device),
                lambda m, d: loss_of(m, (d, torch.float64)), device)


def examine(name, make, loss_of, device):
    import torch
    torch.manual_seed(0)
    model = without_dropout(make())
    other = copy.deepcopy(model)
    wide = copy.deepcopy(model)
    want, want_grads = step(model, loss_of, "cpu")
    other.to(device)
    torch.tern.reset_counts()
    got, got_grads = step(other, loss_of, device)
    torch.optim.AdamW(other.parameters(), 1e-4).step()
    torch.tern.synchronize()
    row = {"name": name, "loss": want, "difference": abs(got - want) / max(abs(want), 1e-6),
           "gradients": float(distance(want_grads, got_grads)), "why": "",
           "calls": sum(served for served, _, _ in torch.tern.counts().values()),
           "fallbacks": torch.tern.fallbacks()}
    row["is_close"] = max(row["gradients"], row["difference"]) <= LIMIT
    if not row["is_close"]:  # the network multiplies roundings, or something is wrong
        try:
            exact, on_device = double(wide, loss_of, "cpu"), double(wide, loss_of, device)
        except Exception as error:
            row["why"] = f"it takes no float64 ({type(error).__name__}: {str(error)[:200]})"
            return row
        row["double"] = float(distance(exact[1], on_device[1]))
        loss = abs(exact[0] - on_device[0]) / max(abs(exact[0]), 1e-6)
        off, off_on_cpu = distance(exact[1], got_grads), distance(exact[1], want_grads)
        row["why"] = (f"in float64 by {row['double']:.0e}, the loss by {loss:.0e}; its float32 is "
                      f"{off:.0e} from that, the cpu's {off_on_cpu:.0e}")
        row["is_close"] = max(row["double"], loss) <= LIMIT_OF_DOUBLE and \
            row["difference"] <= LIMIT_OF_ROUNDED[0] and row["gradients"] <= LIMIT_OF_ROUNDED[1]
    return row


def is_right(row):
    return row["is_close"] and not row["fallbacks"]


def memory_of_machine():
    """In GB."""
    import os
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def main(words=None):
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="tern:0")
    parser.add_argument("--sets", default="plain")
    parser.add_argument("--only", default="")
    parser.add_argument("--table")
    arguments = parser.parse_args(words)
    import torch
    import torch_tern  # noqa: F401
    rows, wrong, skipped, left_out = [], 0, 0, 0
    for kind in arguments.sets.split(","):
        try:
            networks = getattr(networks_list, kind)()
        except ImportError as error:
            print(f"SKIPPED the networks of {kind}: {error}")
            skipped += 1
            continue
        for name, (make, loss_of) in networks.items():
            if arguments.only and name not in arguments.only.split(","):
                continue
            if networks_list.GIGABYTES.get(name, 0) > memory_of_machine():
                print(f"{name:28s} SKIPPED: it takes {networks_list.GIGABYTES[name]} GB of memory")
                left_out += 1
                continue
            try:
                row = examine(name, make, loss_of, arguments.device)
            except Exception as error:
                wrong += 1
                print(f"{name:28s} FAILED {type(error).__name__}: {str(error)[:200]}", flush=True)
                continue
            torch.tern.empty_cache()
            row["set"] = kind
            rows.append(row)
            is_wrong = not is_right(row)
            wrong += is_wrong
            print(f"{name:28s} loss {row['loss']:.5f} differs by {row['difference']:.0e}, gradients "
                  f"by {row['gradients']:.0e}, {row['calls']} calls"
                  f"{'; ' + row['why'] if row['why'] else ''}"
                  f"{'; on the cpu: ' + str(row['fallbacks']) if row['fallbacks'] else ''}"
                  f"{' FAILED' if is_wrong else ''}", flush=True)
    passed = sum(map(is_right, rows))
    print(f"networks on {arguments.device}: {passed} passed, {wrong} failed, "
          f"{left_out} left out for want of memory, {skipped} sets skipped")
    if arguments.table:
        lines = [f"{passed} of {len(rows)} networks of {arguments.sets} on {arguments.device}, "
                 f"{torch_tern.devices()}, PyTorch {torch.__version__}; {left_out} left out for "
                 "want of memory", "",
                 "| network | loss differs by | gradients by | on the cpu |", "|---|---|---|---|"]
        lines += [f"| {r['name']} | {r['difference']:.0e} | {r['gradients']:.0e}"
                  f"{' (' + r['why'] + ')' if r['why'] else ''} | "
                  f"{', '.join(k.replace('aten::', '') for k in r['fallbacks']) or 'nothing'} |"
                  for r in rows]
        pathlib.Path(arguments.table).write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
