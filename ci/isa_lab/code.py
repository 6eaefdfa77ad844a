"""code.py -- what machine code consists of: kernels, their loops, and instructions by class, read
from the assembler texts of AMD's, Intel's and NVIDIA's compilers. The classes: mma (matrix units),
fma, alu (other vector work), sfu (exp, division's first guess), lds and lds_st (local memory), gload
and gstore, scratch (private memory), shuffle, a64 (arithmetic of 64 bits, addresses mostly), div
(integer division), f64, barrier, scalar."""

import re
import struct

# Cycles of a matrix instruction: AMD's from its calculator, the others from peaks of data sheets.
MMA_CYCLES = {
    "gfx90a": 32,
    "gfx942": 16,
    "gfx1100": 32,
    "gfx1201": 16,
    "sm_80": 8,
    "sm_90": 4,
    "dg2": 16,
}


# ---- what an instruction is ----


def amd_class(op, line):
    if re.match(r"v_(s?w?mma|s?mfma|swmmac)", op):
        return "mma", 0
    if op.startswith("ds_"):
        if "bpermute" in op or "swizzle" in op or "permute" in op:
            return "shuffle", 4
        bits = re.search(r"_[bui](\d+)", op)
        many = 2 if re.search(r"(read|write|load|store)2|_2addr", op) else 1
        return ("lds" if "read" in op or "load" in op else "lds_st"), (
            int(bits.group(1)) // 8 if bits else 4
        ) * many
    if op.startswith("scratch_") or (op.startswith("buffer_") and "s[0:3]" in line):
        return "scratch", 0
    if re.match(r"(global|flat|buffer)_(load|store|atomic)", op):
        wide = {
            "dword": 4,
            "dwordx2": 8,
            "dwordx3": 12,
            "dwordx4": 16,
            "b32": 4,
            "b64": 8,
            "b96": 12,
            "b128": 16,
        }
        name = op.split("_")[2]
        return ("gload" if "_load" in op else "gstore"), wide.get(
            name, 2 if "short" in op or "16" in op else 1
        )
    if re.match(r"(v|s)_barrier", op):
        return "barrier", 0
    if re.match(r"v_(pk_|dual_)?(fma|mad|fmac|mac|mad_mix|fma_mix)[a-z0-9_]*_(f32|f16)|v_dot2", op):
        return "fma", 2 if op.startswith("v_dual") or "v_pk" in op else 1
    if "_f64" in op and "cvt_f32" not in op:
        return "f64", 0
    if "iflag" in op:
        return "div", 0
    if re.match(r"v_(add_co|addc|add_co_ci|lshlrev_b64|lshl_add_u64|mad_[iu]64|ashrrev_i64)", op):
        return "a64", 0
    if re.match(r"(v_exp|v_log|v_rcp|v_rsq|v_sqrt|v_sin|v_cos)", op):
        return "sfu", 0
    if re.match(r"v_(permlane|readlane|readfirstlane)", op) or "dpp" in line or "row_" in line:
        return "shuffle", 4
    if op.startswith("v_dual"):
        return "alu", 0
    if op.startswith("v_"):
        return "alu", 0
    return "scalar", 0


def nvidia_class(op, line):
    base = op.split(".")[0]
    if base in ("HMMA", "IMMA", "HGMMA", "DMMA", "QGMMA"):
        return "mma", 0
    width = (
        16
        if ".128" in op
        else (
            8
            if ".64" in op
            else 2 if re.search(r"\.[US]16", op) else 1 if re.search(r"\.[US]8", op) else 4
        )
    )
    if base == "LDSM":
        return "lds", 16
    if base in ("LDS", "STS"):
        return ("lds" if base == "LDS" else "lds_st"), width
    if base in ("LDL", "STL"):
        return "scratch", 0
    if base in ("LDG", "LD", "LDGSTS"):
        return "gload", width
    if base in ("STG", "ST", "RED", "ATOM", "ATOMG"):
        return "gstore", width
    if base == "BAR":
        return "barrier", 0
    if base in ("FFMA", "HFMA2", "FFMA2"):
        return "fma", 1
    if base in ("DFMA", "DADD", "DMUL", "DSETP", "DMNMX") or ".F64" in op:
        return "f64", 0
    if op.startswith("I2F.RP") or op.startswith("I2F.U64.RP") or op.startswith("I2F.U32.RP"):
        return "div", 0
    if (
        op.startswith("IMAD.WIDE")
        or re.match(r"(IADD3|LEA|IADD)\.X|LEA\.HI\.X|IADD\.64|LEA\.HI\.SX|IMAD\.X", op)
        or ".64" in op
    ):
        return "a64", 0
    if base == "MUFU":
        return "sfu", 0
    if base == "SHFL":
        return "shuffle", 4
    if base.startswith("U") or base in (
        "BRA",
        "EXIT",
        "NOP",
        "DEPBAR",
        "LDGDEPBAR",
        "BSSY",
        "BSYNC",
        "LDC",
        "S2R",
        "S2UR",
        "WARPSYNC",
        "CALL",
        "RET",
        "R2UR",
    ):
        return "scalar", 0
    return "alu", 0


def intel_class(op, line):
    if op.startswith("dpas"):
        return "mma", 0
    if op.startswith("send"):
        about = line.split("//")[-1]
        if "scratch" in about:
            return "scratch", 0
        bits = re.search(r"d(\d+)(?:u32)?(?:x(\d+)|c?\.?([xyzw]+))?", about)
        width = 4
        if bits:
            many = (
                int(bits.group(2)) if bits.group(2) else len(bits.group(3)) if bits.group(3) else 1
            )
            width = int(bits.group(1)) // 8 * many
        block = re.search(r"oword (?:aligned )?block (?:read|write) x(\d+)", about)
        if block:  # of all eight lanes together
            width = 2 * int(block.group(1))
        with_ = re.search(r"with ([xyzw]+)", about)
        if with_:
            width = 4 * len(with_.group(1))
        if "byte" in about:
            bits = re.search(r"\b(8|16|32)b\b", about)
            width = int(bits.group(1)) // 8 if bits else 1
        local = (
            ".slm" in op
            or " slm" in about.lower()
            or "SLM" in about
            or re.search(r"0x[0-9a-fA-F]*FE\b", line) is not None
        )
        if "barrier" in about or "fence" in about or "gtwy" in op or "gateway" in about:
            return "barrier", 0
        if (
            "const" in about
            or "oword aligned block" in about
            or "eot" in about.lower()
            or "thread" in about
        ):
            return "scalar", 0
        stores = "write" in about or "store" in about or "atomic" in about
        return (
            ("lds_st" if stores else "lds") if local else ("gstore" if stores else "gload")
        ), width
    if ":df" in line:
        return "f64", 0
    if op.startswith("mad"):
        return ("fma" if ":f " in line or ":hf" in line else "alu"), 1
    if op.startswith("math"):
        return ("div" if "idiv" in op or "iqot" in op or "irem" in op else "sfu"), 0
    if re.search(r":u?q\b", line):
        return "a64", 0
    if op in (
        "jmpi",
        "goto",
        "join",
        "while",
        "if",
        "endif",
        "else",
        "brd",
        "sync.nop",
        "sync.allwr",
        "sync.allrd",
        "nop",
        "call",
        "ret",
        "break",
        "cont",
    ):
        return "scalar", 0
    return ("scalar" if "(W)" in line and "(1|M0)" in line else "alu"), 0


# ---- kernels and loops ----


class Kernel:
    def __init__(self, name, target):
        self.name, self.target = name, target
        self.vgpr = self.sgpr = self.spill = self.scratch = self.local = self.occupancy = None
        self.items = []  # (class, bytes, text)
        self.labels = {}  # label: index
        self.jumps = []  # (index, label)
        self.loops = []

    def close(self):
        spans = {}
        for at, label in self.jumps:
            begin = self.labels.get(label)
            if begin is not None and begin <= at:
                spans[begin] = max(spans.get(begin, 0), at)
        spans = [(b, e) for b, e in spans.items()]
        inner = [
            s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)
        ]
        self.loops = [(s, self.count(*s), s in inner) for s in sorted(spans)]
        best = [
            (c.get("mma", 0) * 1000 + c.get("fma", 0) * 20 + n(c), s, c)
            for s, c, i in self.loops
            if i
        ]
        self.hot = (
            max(best, key=lambda b: b[0])
            if best
            else (0, (0, len(self.items) - 1), self.count(0, len(self.items) - 1))
        )
        return self

    def count(self, begin, end):
        counts = {}
        for kind, width, _ in self.items[begin : end + 1]:
            counts[kind] = counts.get(kind, 0) + (width if kind == "fma" else 1)
            if kind in ("lds", "lds_st", "gload", "gstore") and width:
                key = kind + "_least"
                counts[key] = min(counts.get(key, 99), width)
                counts[kind + "_bytes"] = counts.get(kind + "_bytes", 0) + width
        return counts

    def flags(self):
        c, found = self.hot[2], []
        if self.spill:
            found.append("SPILL")
        if self.scratch and not self.spill:
            found.append("SCRATCH")
        if c.get("scratch"):
            found.append("scratch-in-loop")
        if c.get("gload_least", 16) < 4 and c.get("gload", 0) >= 1:
            found.append("NARROW%d" % c["gload_least"])
        if c.get("div"):
            found.append("DIV")
        if c.get("f64") and not self.name.endswith("f64"):
            found.append("F64")
        if c.get("a64", 0) > 4 and c.get("a64", 0) * 10 > n(c):
            found.append("A64")
        if self.occupancy is not None and self.occupancy <= 2:
            found.append("OCC%d" % self.occupancy)
        return found


def bound(k):
    """The share of the matrix unit's peak if nothing waited, and what binds: by the cycles of a
    wave's hottest loop."""
    c, t = k.hot[2], k.target
    if not c.get("mma") or t not in MMA_CYCLES:
        return "-"
    wide = 4 if t in ("gfx90a", "gfx942") else 1  # cycles of a vector instruction
    lanes = 64 if wide == 4 else 8 if t == "dg2" else 32
    sharers = {"gfx1100": 2, "gfx1201": 2, "dg2": 16}.get(
        t, 4
    )  # units that share 128 bytes a cycle of local memory
    mma = c["mma"] * MMA_CYCLES[t]
    vector = (
        sum(c.get(x, 0) for x in ("alu", "fma", "a64", "shuffle", "div")) * wide
        + c.get("sfu", 0) * 4 * wide
    )
    local = (c.get("lds_bytes", 0) + c.get("lds_st_bytes", 0)) * lanes / 128 * sharers
    if t.startswith("sm_"):
        ways = {"matrix": mma, "issue": n(c), "local": local}
    elif t in ("gfx1100", "gfx1201"):  # one unit or the other
        ways = {"vector": mma + vector, "local": local}
        if mma > 4 * vector:
            ways["matrix"] = ways.pop("vector")
    else:
        ways = {"matrix": mma, "vector": vector, "local": local}
    most = max(ways, key=lambda w: ways[w])
    return "%d%% %s" % (100 * mma / ways[most], most)


def n(counts):
    return sum(v for k, v in counts.items() if not k.endswith(("_least", "_bytes")))


def read_amd(text, target):
    kernels, kernel = [], None
    meta = {}
    for block in re.findall(
        r"  - \.agpr_count:.*?(?=\n  - |\namdhsa|\Z)", text, re.S
    ) or re.findall(r"  - \.args:.*?(?=\n  - \.args|\namdhsa)", text, re.S):
        name = re.search(r"\.name:\s+(\S+)", block)
        if name:
            meta[name.group(1)] = {k: int(v) for k, v in re.findall(r"\.(\w+):\s+(\d+)\n", block)}
    for line in text.split("\n"):
        start = re.match(r"^([A-Za-z_]\w*):\s+; @", line)
        if start:
            kernel = Kernel(start.group(1), target)
            kernels.append(kernel)
        elif kernel is None:
            continue
        elif line.startswith(".Lfunc_end"):
            pass
        elif re.match(r"^\.LBB\w+:", line):
            kernel.labels[line.split(":")[0]] = len(kernel.items)
        elif line.startswith("\t") and not line.startswith(("\t.", "\t;")):
            body = line.split(";")[0].strip()
            op = body.split()[0]
            jump = re.match(r"s_c?branch\w* (\.LBB\w+)", body)
            if jump:
                kernel.jumps.append((len(kernel.items), jump.group(1)))
            for part in body.split(" :: "):
                kind, width = amd_class(part.split()[0], part)
                kernel.items.append(
                    (kind, width if kind != "fma" else 2 if "v_pk" in part else 1, part)
                )
        else:
            told = re.match(
                r"; (ScratchSize|Occupancy|LDSByteSize|TotalNumSgprs|NumVgprs|TotalNumVgprs)"
                r": (\d+)",
                line,
            )
            if told:
                value = int(told.group(2))
                key = {
                    "ScratchSize": "scratch",
                    "Occupancy": "occupancy",
                    "LDSByteSize": "local",
                    "TotalNumSgprs": "sgpr",
                    "NumVgprs": "vgpr",
                    "TotalNumVgprs": "vgpr",
                }[told.group(1)]
                setattr(kernel, key, max(value, getattr(kernel, key) or 0))
    for k in kernels:
        k.spill = meta.get(k.name, {}).get("vgpr_spill_count", 0)
        # Room that the compiler reserved while it allocated registers, and that no instruction reads or writes, is none.
        if not any(re.match("(buffer|scratch|flat)_(load|store)", i[2]) for i in k.items):
            k.scratch = 0
    return [k.close() for k in kernels if k.name in meta or not meta]


def read_nvidia(text, log, target):
    told, name = {}, None
    for line in log.split("\n"):
        at = re.search(r"Compiling entry function '(\w+)'", line)
        name = at.group(1) if at else name
        if "bytes stack frame" in line:
            a = [int(x) for x in re.findall(r"(\d+) bytes", line)]
            told[name] = {"stack": a[0], "spill": a[1] + a[2]}
        used = re.search(r"Used (\d+) registers", line)
        if used and name:
            shared = re.search(r"(\d+) bytes smem", line)
            told.setdefault(name, {}).update(
                regs=int(used.group(1)), smem=int(shared.group(1)) if shared else 0
            )
    kernels, kernel = [], None
    for line in text.split("\n"):
        start = re.match(r"\.text\.(\w+):", line)
        if start:
            kernel = Kernel(start.group(1), target)
            kernels.append(kernel)
        if kernel is None:
            continue
        label = re.match(r"(\.L_x_\w+|\.L_\w+):", line)
        if label:
            kernel.labels[label.group(1)] = len(kernel.items)
        body = re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", line)
        if body:
            body = body.group(1).strip()
            words = body.split()
            op = words[1] if words[0].startswith("@") else words[0]
            jump = re.search(r"`\((\.L_\w+)\)", body)
            if jump and "BRA" in op:
                kernel.jumps.append((len(kernel.items), jump.group(1)))
            if op == "NOP":
                continue
            kind, width = nvidia_class(op, body)
            kernel.items.append((kind, width, body))
    for k in kernels:
        t = told.get(k.name, {})
        k.vgpr, k.sgpr, k.local = t.get("regs"), 32, t.get("smem")
        k.spill, k.scratch = t.get("spill", 0), t.get("stack", 0)
    return [k.close() for k in kernels if k.name in told]


def read_zebin(data, target, disassemble):
    if data[:4] != b"\x7fELF":
        return [], "no ELF"
    (offset,) = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + 64 * i) for i in range(count)]
    strings, info, kernels, whole = sections[names][4], "", [], ""
    for s in sections:
        name = data[strings + s[0] :].split(b"\0")[0].decode()
        body = data[s[4] : s[4] + s[5]]
        if name == ".ze_info":
            info = body.decode()
        elif name.startswith(".text.") and not name.startswith(".text.Intel"):
            text = disassemble(body)
            whole += "// " + name + "\n" + text
            kernel = Kernel(name[6:], target)
            for line in text.split("\n"):
                label = re.match(r"^(L\d+):", line)
                if label:
                    kernel.labels[label.group(1)] = len(kernel.items)
                body = re.match(r"^\s*(?:\([^)]*\)\s*)*([a-z][a-z0-9_.]*)\s", line)
                if not body or body.group(1) == "illegal":
                    continue
                op = body.group(1)
                if op in ("jmpi", "goto", "goto.b", "while", "brd", "cont", "call"):
                    for label in re.findall(r"\b(L\d+)\b", line):
                        kernel.jumps.append((len(kernel.items), label))
                kind, width = intel_class(op, line)
                kernel.items.append((kind, width, line.strip()))
            kernels.append(kernel)
    for block in info.split("kernels_misc_info:")[0].split("  - name:")[1:]:
        name = block.split()[0]
        for k in kernels:
            if k.name == name:

                def number(key):
                    m = re.search(r"\b" + key + r":\s+(\d+)", block)
                    return int(m.group(1)) if m else 0

                k.vgpr, k.sgpr, k.local = (
                    number("grf_count"),
                    number("simd_size"),
                    number("slm_size"),
                )
                k.spill = number("spill_size")
                k.scratch = sum(
                    int(x)
                    for x in re.findall(
                        r"usage:\s+(?:private_space|spill_fill_space)\s+size:\s+(\d+)", block
                    )
                )
    return [k.close() for k in kernels], whole
