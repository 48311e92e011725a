# Packages of the distribution, found by CMake; nothing is vendored or downloaded.
if(IDLESCOPE_STATIC)
  # Before anything is looked for. Protobuf, zlib, zstd and sqlite have static archives; simdjson has
  # none in Debian: tools/CMakeLists.txt lays it beside the program.
  set(Protobuf_USE_STATIC_LIBS ON)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
endif()
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(fmt REQUIRED)
find_package(tl-expected REQUIRED)

if(IDLESCOPE_BUILD_ANALYSIS)
  find_package(CLI11 REQUIRED)
  find_package(simdjson REQUIRED)
  find_package(SQLite3 REQUIRED)
  find_package(ZLIB REQUIRED)
  find_package(LibArchive)
endif()

find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
add_library(idlescope_zstd INTERFACE)
target_include_directories(idlescope_zstd INTERFACE ${ZSTD_INCLUDE_DIR})
target_link_libraries(idlescope_zstd INTERFACE ${ZSTD_LIBRARY})

# The recorder needs CUPTI's and NVTX's headers only; it links neither.
if(IDLESCOPE_BUILD_PROFILER)
  find_package(CUDAToolkit QUIET)
  find_path(CUPTI_INCLUDE_DIR cupti.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_TARGET_DIR}/extras/CUPTI/include
          /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include REQUIRED)
  find_path(CUDA_INCLUDE_DIR cuda.h HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include REQUIRED)
  add_library(idlescope_cuda_headers INTERFACE)
  target_include_directories(idlescope_cuda_headers SYSTEM INTERFACE ${CUPTI_INCLUDE_DIR} ${CUDA_INCLUDE_DIR})
endif()

if(IDLESCOPE_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  find_package(Python3 COMPONENTS Interpreter)
endif()
if(IDLESCOPE_BUILD_TESTS AND IDLESCOPE_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
