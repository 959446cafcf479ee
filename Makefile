# Calls the CMake presets, for people who type `make`. It has no rules of its own.

PREFIX ?= /usr/local
DESTDIR ?=

# The presets ask for Ninja; a machine without it uses CMake's other generator. This is expanded
# late, because bootstrap may have installed Ninja a moment ago.
GENERATOR = $(if $(shell command -v ninja),,-G "Unix Makefiles")
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# Many tests mostly wait for other processes.
TEST_JOBS ?= $(shell expr 2 \* $(JOBS))

define need_cmake
	@command -v cmake >/dev/null || { echo "cmake is missing: run tools/bootstrap"; exit 1; }
	@command -v ninja >/dev/null || echo "ninja is missing (tools/bootstrap gets it): using make"
endef

# The product alone, or with tests and benchmarks, which are twice as much to build.
define product
	cmake --preset $(1) $(GENERATOR) -DHEDDLE_TESTS=OFF $(2)
	cmake --build build/$(1) -j $(JOBS)
endef

define workflow
	cmake --preset $(1) $(GENERATOR) -DHEDDLE_TESTS=ON
	cmake --build build/$(1) -j $(JOBS)
endef

.PHONY: all demo test test-all ci sanitize faults hostile fuzz bench \
	bench-cpu bench-vm site lint tidy deb wheel release containers install uninstall clean help \
	bootstrap

all:
	$(need_cmake)
	$(call product,dev)

bootstrap:
	tools/bootstrap

# Compiled fast, in a folder of its own: minutes matter to people who have just met heddle.
demo:
	tools/bootstrap --build
	$(call product,demo)
	tools/demo

# The lint cases are among the CTest cases. Cases that take more than ten seconds of processor time
# are left to test-all, which CI runs.
test: bootstrap
	$(call workflow,dev)
	ctest --preset dev -j $(TEST_JOBS) -LE '^(long|containers)$$'

test-all: test
	ctest --preset dev -j $(TEST_JOBS) -L '^long$$'

# What .ci/run does after `make test`.
ci: bootstrap
	tools/ci

sanitize: bootstrap
	$(call workflow,asan)
	ctest --preset asan
	$(call workflow,tsan)
	ctest --preset tsan

# Every operation that can fail, one at a time; `make test` tries some of them.
faults: bootstrap
	$(call workflow,dev)
	HED_SWEEP=--all ctest --preset dev -L faults -j 1

# 100,000 sessions of clients that mean harm, beside honest ones.
hostile: bootstrap
	$(call workflow,dev)
	HED_BUILD=$(CURDIR)/build/dev python3 -B tests/attack/hostile.py --sessions 100000 $(ARGS)

# 10 million inputs for each parser; ARGS='--seconds 60 ptx_parse' and so on go to tools/fuzz.
fuzz:
	$(need_cmake)
	tools/fuzz $(ARGS)

bench:
	$(need_cmake)
	$(call workflow,release)
	bench/run

# ARGS='--quick --only sgemm' and so on go to bench/cpu/run.
bench-cpu:
	tools/bootstrap pocl-opencl-icd ocl-icd-opencl-dev opencl-headers 'clang-19|clang'
	cmake --preset release $(GENERATOR)
	cmake --build build/release -j $(JOBS) --target libcuda backend_cpu compiler_llvm
	bench/cpu/run $(ARGS)

# ARGS='--quick --over window' and so on go to bench/vm/run.
bench-vm: bootstrap
	$(call workflow,release)
	bench/vm/run $(ARGS)

# ARGS='--out DIR' makes it elsewhere.
site:
	@python3 -B tools/site $(ARGS)

lint:
	$(need_cmake)
	$(call workflow,dev)
	ctest --preset dev -L lint

tidy:
	$(need_cmake)
	$(call workflow,dev)
	clang-tidy -p build/dev --quiet $(shell find src -name '*.c')

deb: bootstrap
	tools/deb

wheel:
	tools/bootstrap zlib1g-dev
	tools/wheel

# ARGS=--check builds everything twice and compares the bytes.
release:
	tools/bootstrap zlib1g-dev
	tools/release $(ARGS)

# ARGS='--build', --clean or names of cases.
containers: bootstrap
	tools/containers $(ARGS)

install:
	$(need_cmake)
	$(call product,release,-DHEDDLE_SITE=ON)
	DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)

uninstall:
	DESTDIR=$(DESTDIR) tools/uninstall build/release/install_manifest.txt

clean:
	rm -rf build

help:
	@echo "make            configure and build into build/dev, without tests"
	@echo "make demo       build, then show what heddle does"
	@echo "make test       install packages, build, run the tests and lint checks"
	@echo "make test-all   the same, with the tests that take a core longer than ten seconds"
	@echo "make ci         run clang, a sanitizer and clang-tidy, as CI does beside the tests"
	@echo "make sanitize   run the tests under ASan+UBSan, then under TSan"
	@echo "make faults     let every operation of client and server fail once"
	@echo "make hostile    100,000 sessions of clients that mean harm"
	@echo "make fuzz       give each parser 10 million inputs (ARGS='--seconds 60 ptx_parse' ...)"
	@echo "make bench      build for release and measure"
	@echo "make bench-cpu  the CPU GPU beside PoCL and plain C (ARGS=--quick, --help ...)"
	@echo "make bench-vm   calls and copies in a QEMU guest beside its bare primitives"
	@echo "make site       the documentation as HTML, in build/site; it needs Python alone"
	@echo "make lint       check format, includes, names, links, READMEs, style and headers"
	@echo "make tidy       run clang-tidy over src (slow)"
	@echo "make deb        make Debian packages in build/deb"
	@echo "make wheel      make a file for pip install in build/dist"
	@echo "make release    make all files of a release in build/dist (ARGS=--check ...)"
	@echo "make containers build container images, and check them with podman"
	@echo "make install    install a release build to PREFIX ($(PREFIX)), below DESTDIR"
	@echo "make uninstall  remove what \`make install\` has installed"
	@echo "make clean      remove build/"
