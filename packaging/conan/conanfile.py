"""conanfile.py -- the recipe of tern for Conan 2: `conan create packaging/conan`. The sources are the tree that it lies in."""
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rm

TREE = os.path.join("..", "..")


class Tern(ConanFile):
    name = "tern"
    description = "Tensors, autograd and training for C"
    topics = ("tensor", "autograd", "machine-learning", "opencl", "cuda")
    license = "MIT"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"opencl": [True, False], "cuda": [True, False], "models": [True, False], "tool": [True, False]}
    default_options = {"opencl": True, "cuda": True, "models": True, "tool": True}

    def set_version(self):
        lists = load(self, os.path.join(self.recipe_folder, TREE, "CMakeLists.txt"))
        self.version = re.search(r"project\(tern VERSION ([0-9.]+)", lists).group(1)

    def export_sources(self):
        tree = os.path.join(self.recipe_folder, TREE)
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "cl_kernels/*", "docs/*", "examples/*", "include/*", "src/*"):
            copy(self, pattern, tree, self.export_sources_folder)

    def configure(self):  # it is C
        self.settings.rm_safe("compiler.libcxx")
        self.settings.rm_safe("compiler.cppstd")

    def requirements(self):
        self.requires("jansson/[>=2.13 <3]")
        if self.options.models:
            self.requires("pcre2/[>=10.40 <11]")
            self.requires("utf8proc/[>=2.6 <3]")

    def build_requirements(self):
        if self.options.opencl:  # whose loader is opened at run time
            self.requires("opencl-headers/[>=2022.01.04]", headers=True, libs=False, visible=False)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for option in ("OPENCL", "CUDA", "MODELS", "TOOL"):
            toolchain.cache_variables["TERN_" + option] = bool(getattr(self.options, option.lower()))
        for option in ("TESTS", "EXAMPLES", "ONEDNN", "OPENMP", "ONNX", "MPI"):
            toolchain.cache_variables["TERN_" + option] = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        libraries = os.path.join(self.package_folder, "lib")
        for name in ("libtern.a", "libtern_names.a", "libtern_report.a", "libtern_models.a"):
            rm(self, name, libraries)
        rm(self, "*_static.pc", os.path.join(libraries, "pkgconfig"))
        rm(self, "tern-static-targets*.cmake", os.path.join(libraries, "cmake", "tern"))

    def package_info(self):
        # tern's own package is found, with its components: find_package(tern COMPONENTS models).
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "tern")]
        self.cpp_info.set_property("pkg_config_name", "none")
        self.cpp_info.libs = ["tern"]
