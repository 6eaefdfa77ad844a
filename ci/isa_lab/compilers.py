"""compilers.py -- the vendors' compilers in a private folder, and one kernel text through each of
them. Nothing is installed: an installed driver would be one more OpenCL platform for every test."""

import ctypes
import os
import re
import subprocess
import sys

from isa_lab import code

# Debian 12's packages, and the one of Debian 13 that knows gfx1100 and gfx942; gfx1201 takes
# gfx1100's file, which holds a version number alone.
PACKAGES = (
    "clang-19 libclang-cpp19 libllvm19 libclang-common-19-dev llvm-19 lld-19 intel-opencl-icd "
    "libigc1 libigc-tools "
    "libigdfcl1 libigdgmm12 libopencl-clang14 libllvmspirvlib14"
).split()
LATER_PACKAGE = "rocm-device-libs-17"
NVIDIA = ["nvidia-cuda-nvdisasm==13.2.51", "nvidia-cuda-nvrtc==13.0.*"]
# Device libraries and whether waves have 64 lanes.
AMD = {
    "gfx906": ("906", "on"),
    "gfx90a": ("90a", "on"),
    "gfx942": ("942", "on"),
    "gfx1030": ("1030", "off"),
    "gfx1100": ("1100", "off"),
    "gfx1201": ("1100", "off"),
}
INTEL = {"tgllp": "12p1", "dg2": "12p71"}
# What the driver of a device with matrix units defines, by which its compiler guards declarations.
INTEL_MATRIX = [
    "cl_intel_subgroup_matrix_multiply_accumulate=1",
    "cl_intel_subgroup_local_block_io=1",
]
APT = (
    'Dir "%s"; Dir::State::status "%s/var/lib/dpkg/status"; APT::Architecture "amd64"; '
    'APT::Sandbox::User "root";\n'
)


class Refused(Exception):
    """A compiler that does not take a text; its message."""


def run(command, **more):
    return subprocess.run(
        ["nice"] + command, capture_output=True, text=True, errors="replace", **more
    )


def must(command, **more):
    done = run(command, **more)
    if done.returncode:
        raise OSError(
            "%s: %s" % (" ".join(command[:3]), (done.stderr or done.stdout).strip()[-300:])
        )
    return done.stdout


def is_set_up(folder):
    return os.path.exists(folder + "/ready")


def set_up(folder):
    """Some 0.9 GB by apt's and pip's own clients; OSError says what could not be had."""
    debs, root, apt = folder + "/debs", folder + "/root", folder + "/later"
    os.makedirs(debs, exist_ok=True)
    must(["apt-get", "download", "-qq"] + PACKAGES, cwd=debs)
    for sub in (
        "etc/apt/apt.conf.d",
        "etc/apt/preferences.d",
        "etc/apt/trusted.gpg.d",
        "var/lib/apt/lists/partial",
        "var/cache/apt/archives/partial",
        "var/lib/dpkg",
    ):
        os.makedirs(apt + "/" + sub, exist_ok=True)
    open(apt + "/var/lib/dpkg/status", "a").close()
    sites = must(["apt-get", "indextargets", "--format", "$(SITE)"]).split()
    if not sites:
        raise OSError("apt-get indextargets names no archive")
    with open(apt + "/etc/apt/sources.list", "w") as f:
        f.write(
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s trixie main\n"
            % sites[0]
        )
    with open(apt + "/apt.conf", "w") as f:
        f.write(APT % (apt, apt))
    later = dict(os.environ, APT_CONFIG=apt + "/apt.conf")
    must(["apt-get", "update", "-qq"], env=later)
    must(["apt-get", "download", "-qq", LATER_PACKAGE], cwd=debs, env=later)
    for deb in sorted(os.listdir(debs)):
        must(["dpkg-deb", "-x", debs + "/" + deb, root])
        os.remove(debs + "/" + deb)
    must(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder + "/py"]
        + NVIDIA
    )
    open(folder + "/ready", "w").close()


def find(folder, name, part):
    for at, _, files in os.walk(folder):
        if name in files and part in at:
            return at
    return None


class Compilers:
    """compile(target, text, includes, large, folder) gives the kernels that the target's compiler
    makes of a text, and the assembler text; large asks Intel's for its large register file."""

    def __init__(self, folder):
        self.root = os.path.abspath(folder) + "/root"
        self.llvm = self.root + "/usr/lib/llvm-19/bin/"
        self.env = dict(
            os.environ,
            LD_LIBRARY_PATH="%s/usr/lib/x86_64-linux-gnu:%s/usr/lib/llvm-19/lib"
            % (self.root, self.root),
        )
        self.libraries = find(self.root, "ocml.bc", "llvm-17")
        self.python = os.path.abspath(folder) + "/py"
        self.nvrtc = None

    def compile(self, target, text, includes, large, folder):
        with open(folder + "/a.cl", "w") as f:
            f.write(text)
        way = self.amd if target in AMD else self.intel if target in INTEL else self.nvidia
        return way(target, includes, large, folder)

    def flatten(self, defines, includes, folder):
        """One text without headers, by clang's preprocessor, which leaves a _Pragma in its place."""
        done = run(
            [self.llvm + "clang", "-E", "-P", "-undef", "-w", "-x", "c"]
            + ["-D" + d for d in defines]
            + ["-I" + includes, folder + "/a.cl"],
            env=self.env,
        )
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout

    def amd(self, target, includes, large, folder):
        isa, wave64 = AMD[target]
        command = [
            self.llvm + "clang",
            "-x",
            "cl",
            "-cl-std=CL1.2",
            "-D__OPENCL_VERSION__=120", # as a driver does
            "-w",
            "-O3",
            "-target",
            "amdgcn-amd-amdhsa",
            "-mcpu=" + target,
            "-Xclang",
            "-finclude-default-header",
            "-nogpulib",
            "-mcode-object-version=5",
            "-S",
            "-o",
            folder + "/a.s",
            folder + "/a.cl",
            "-I" + includes,
        ]
        for bit in (
            "opencl ocml ockl oclc_isa_version_%s oclc_daz_opt_off oclc_unsafe_math_off "
            "oclc_finite_only_off "
            "oclc_correctly_rounded_sqrt_off oclc_wavefrontsize64_%s oclc_abi_version_500"
            % (isa, wave64)
        ).split():
            command += [
                "-Xclang",
                "-mlink-builtin-bitcode",
                "-Xclang",
                "%s/%s.bc" % (self.libraries, bit),
            ]
        done = run(command, env=self.env)
        if done.returncode:
            raise Refused(done.stderr)
        with open(folder + "/a.s") as f:
            text = f.read()
        return code.read_amd(text, target), text

    def intel(self, target, includes, large, folder):
        has = INTEL_MATRIX if target == "dg2" else []
        defines = ["__OPENCL_VERSION__=120", "__OPENCL_C_VERSION__=120", "cl_khr_fp16=1"] + has
        with open(folder + "/flat.cl", "w") as f:
            f.write(self.flatten(defines, includes, folder))
        options = "-cl-std=CL1.2 -w " + " ".join("-D" + d for d in has)
        options += " -cl-intel-256-GRF-per-thread" if large and target == "dg2" else ""
        done = run(
            [
                self.root + "/usr/bin/ocloc",
                "compile",
                "-file",
                folder + "/flat.cl",
                "-device",
                target,
                "-options",
                options,
                "--format",
                "zebin",
                "-out_dir",
                folder,
                "-output",
                "a",
            ],
            env=self.env,
        )
        binary = [f for f in os.listdir(folder) if f.endswith(".bin")]
        if not binary:
            raise Refused(done.stdout + done.stderr)

        def disassemble(body):
            with open(folder + "/k", "wb") as f:
                f.write(body)
            return run(
                [self.root + "/usr/bin/iga64", "-d", "-p=" + INTEL[target], folder + "/k"],
                env=self.env,
            ).stdout

        with open(folder + "/" + binary[0], "rb") as f:
            kernels, text = code.read_zebin(f.read(), target, disassemble)
        spills = dict(
            re.findall(
                r"kernel (\w+)\s+compiled SIMD\d+ allocated \d+ regs and spilled around (\d+)",
                done.stdout + done.stderr,
            )
        )
        for k in kernels:
            k.spill = int(spills.get(k.name, k.spill))
        return kernels, text

    def nvidia(self, target, includes, large, folder):
        text = self.flatten(
            ["__CUDA_ARCH__=%s0" % target[3:], "__CUDACC_RTC__=1"], includes, folder
        )
        self.nvrtc = self.nvrtc or load_nvrtc(self.python)
        cubin, log = nvrtc_compile(self.nvrtc, text, target)
        with open(folder + "/a.cubin", "wb") as f:
            f.write(cubin)
        sass = run(
            [find(self.python, "nvdisasm", "bin") + "/nvdisasm", "-c", folder + "/a.cubin"]
        ).stdout
        return code.read_nvidia(sass, log, target), sass


def load_nvrtc(folder):
    for at, _, files in os.walk(folder):
        for name in files:
            if re.match(r"libnvrtc\.so\.\d+$", name):
                return ctypes.CDLL(at + "/" + name)
    raise OSError("there is no NVRTC in " + folder)


def nvrtc_compile(nvrtc, text, target):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"a.cu", 0, None, None)
    options = [
        b"-arch=" + target.encode(),
        b"--fmad=false",
        b"--disable-warnings",
        b"--ptxas-options=-v",
    ]
    failed = nvrtc.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*options)
    )
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    if failed:
        raise Refused(log.value.decode())
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw, log.value.decode()
