/* libraries.h -- the file names of libraries that are opened at run time, on Linux, macOS and
 * Windows. Several names are separated by spaces; the first that loads is used. */
#ifndef TERN_BASE_LIBRARIES_H
#define TERN_BASE_LIBRARIES_H

#if defined _WIN32
#define TERN_LIBRARY(LINUX, MACOS, WINDOWS) WINDOWS
#elif defined __APPLE__
#define TERN_LIBRARY(LINUX, MACOS, WINDOWS) MACOS
#else
#define TERN_LIBRARY(LINUX, MACOS, WINDOWS) LINUX
#endif

/* clang-format off */
#define TERN_LIBRARY_ENDING   TERN_LIBRARY(".so", ".dylib", ".dll")
#define TERN_LIBRARY_OPENCL   TERN_LIBRARY("libOpenCL.so.1 libOpenCL.so", "/System/Library/Frameworks/OpenCL.framework/OpenCL", "OpenCL.dll")
#define TERN_LIBRARY_CLBLAST  TERN_LIBRARY("libclblast.so.1 libclblast.so", "libclblast.1.dylib libclblast.dylib", "clblast.dll libclblast.dll")
#define TERN_LIBRARY_ONEDNN   TERN_LIBRARY("libdnnl.so.%d", "libdnnl.%d.dylib", "dnnl.dll") /* the major version */
#define TERN_LIBRARY_ZLIB     TERN_LIBRARY("libz.so.1 libz.so", "libz.1.dylib libz.dylib", "zlib1.dll libz.dll")
#define TERN_LIBRARY_ZSTD     TERN_LIBRARY("libzstd.so.1 libzstd.so", "libzstd.1.dylib libzstd.dylib", "libzstd.dll zstd.dll")
#define TERN_LIBRARY_ZIP      TERN_LIBRARY("libzip.so.5 libzip.so.4 libzip.so", "libzip.5.dylib libzip.dylib", "libzip.dll zip.dll")
#define TERN_LIBRARY_PNG      TERN_LIBRARY("libpng16.so.16 libpng16.so", "libpng16.16.dylib libpng16.dylib", "libpng16-16.dll libpng16.dll")
#define TERN_LIBRARY_JPEG     TERN_LIBRARY("libturbojpeg.so.0 libturbojpeg.so", "libturbojpeg.0.dylib libturbojpeg.dylib", "libturbojpeg.dll turbojpeg.dll")
#define TERN_LIBRARY_WEBP     TERN_LIBRARY("libwebp.so.7 libwebp.so.6 libwebp.so", "libwebp.7.dylib libwebp.dylib", "libwebp-7.dll libwebp.dll")
#define TERN_LIBRARY_PROTOBUF TERN_LIBRARY("libprotobuf-c.so.1", "libprotobuf-c.1.dylib", "libprotobuf-c-1.dll protobuf-c.dll")
/* NVIDIA's libraries, with %d for CUDA's major version; there are none for macOS. */
#define TERN_LIBRARY_CUDA     TERN_LIBRARY("libcuda.so.1", "libcuda.dylib", "nvcuda.dll")
#define TERN_LIBRARY_CUDART   TERN_LIBRARY("libcudart.so.%d", "libcudart.%d.dylib", "cudart64_%d.dll")
#define TERN_LIBRARY_NVRTC    TERN_LIBRARY("libnvrtc.so.%d", "libnvrtc.%d.dylib", "nvrtc64_%d0_0.dll")
#define TERN_LIBRARY_CUBLASLT TERN_LIBRARY("libcublasLt.so.%d", "libcublasLt.%d.dylib", "cublasLt64_%d.dll")
#define TERN_LIBRARY_CUDNN_9  TERN_LIBRARY("libcudnn.so.9", "libcudnn.9.dylib", "cudnn64_9.dll")
#define TERN_LIBRARY_CUDNN_8  TERN_LIBRARY("libcudnn.so.8", "libcudnn.8.dylib", "cudnn64_8.dll")
#define TERN_LIBRARY_NCCL     TERN_LIBRARY("libnccl.so.2", "libnccl.2.dylib", "nccl.dll")
/* The folders of these libraries below an installation, and those of a Python and of a wheel. */
#define TERN_CUDA_FOLDER      TERN_LIBRARY("/lib64", "/lib", "/bin")
#define TERN_PYTHON_FOLDER    TERN_LIBRARY("lib/python3*/", "lib/python3*/", "Lib/")
#define TERN_WHEEL_FOLDER     TERN_LIBRARY("lib", "lib", "bin")
/* clang-format on */

#endif
