# SPDX-License-Identifier: GPL-2.0-only
ifneq ($(KERNELRELEASE),)

# Inside a kernel tree.
obj-$(CONFIG_HAMLYN) += driver/

else

VERSION := 0.1.0
SOVERSION := 0

# Where products go, and where what was downloaded is kept.
BUILD ?= build
export HAMLYN_CACHE ?= $(CURDIR)/.cache
# Kernel that check-vm, vm-shell and the demo boot, and modules is for.
KERNEL ?= 6.1
# Kernels that "make check" covers, and those that "make check-all" does.
KERNELS ?= 6.1 7.2 debug
ALL_KERNELS ?= 6.1 6.12 7.2 debug kcsan
# Minutes in which "make check" is to end: a debug kernel that is not built in time is left out.
CHECK_MINUTES ?= 80

CC ?= gcc
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes
CPPFLAGS_ALL := -D_GNU_SOURCE -Iuapi -Ilibhamlyn/include $(CPPFLAGS)
CFLAGS_ALL := -std=gnu11 $(WARN) $(CFLAGS)

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
SBINDIR ?= $(PREFIX)/sbin
# Python searches a folder of its version's name in /usr/local. That of another Python, of a
# virtual environment, is none of ours.
PYTHONDIR ?= $(or $(if $(filter /usr/local,$(PREFIX)),$(filter $(PREFIX)/%,$(shell python3 -c \
	'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null))),$(PREFIX)/lib/python3/dist-packages)
BINDIR ?= $(PREFIX)/bin
DATADIR ?= $(PREFIX)/share
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions

CORE := $(wildcard driver/core/*.c driver/core/*.h)
LIB_SRC := $(wildcard libhamlyn/src/*.c)
LIB_OBJ := $(LIB_SRC:libhamlyn/src/%.c=$(BUILD)/obj/lib/%.o)
LIB_HDR := $(wildcard libhamlyn/include/*.h libhamlyn/include/hamlyn/*.h libhamlyn/src/*.h uapi/linux/*.h)
EXAMPLES := $(patsubst libhamlyn/examples/%.c,$(BUILD)/%,$(wildcard libhamlyn/examples/*.c))
CTL_SRC := $(wildcard tools/hamlynctl/*.c)
CTL_OBJ := $(CTL_SRC:tools/hamlynctl/%.c=$(BUILD)/obj/ctl/%.o)
CTL_HDR := $(wildcard tools/hamlynctl/*.h uapi/linux/*.h)
CTL_PKGS := libnl-genl-3.0 libnl-3.0 json-c ncursesw
PERF_OBJ := $(patsubst tools/hamlyn-perf/%.c,$(BUILD)/obj/perf/%.o,$(wildcard tools/hamlyn-perf/*.c))

# Tests: on both devices, on the kernel device only, on the embedded one only.
TESTS_SHM := $(filter $(wildcard selftests/*.c), \
	$(addprefix selftests/,segment.c hostile_segment.c crowd.c))
TESTS_KERNEL := $(filter $(wildcard selftests/*.c), \
	$(addprefix selftests/,uapi_size.c compat32.c foreign.c inherit.c limits.c \
	poll_wait.c poll_uring.c counts.c conformance_kernel.c conformance_adversary.c survivors.c race_kernel.c \
	coverage_netlink.c nics.c engine.c lists.c) \
	$(filter-out $(TESTS_SHM),$(wildcard selftests/hostile_*.c)))
# Random calls, and faults at every allocation: selftests/debug-guest.sh runs them. And what
# needs a disk.
TESTS_DEBUG := $(filter $(wildcard selftests/*.c), \
	$(addprefix selftests/,fuzz_calls.c fail_nth.c on_disk.c))
TESTS_BOTH := $(filter-out selftests/hamlyn_test.c $(TESTS_SHM) $(TESTS_KERNEL) $(TESTS_DEBUG), \
	$(wildcard selftests/*.c))
test_bins = $(patsubst selftests/%.c,$(BUILD)/selftests/%,$(1))
UNITS := $(patsubst selftests/unit/%.c,$(BUILD)/unit/%,$(wildcard selftests/unit/unit_*.c))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

help:
	@echo 'make            library, examples and tools, into $(BUILD)/'
	@echo 'make peers      hamlyn-perf over MPI, to compare with, into $(BUILD)/'
	@echo 'make modules    hamlyn.ko into $(BUILD)/, for KERNEL=6.1|6.12|7.2|debug|kcsan or KDIR=FOLDER'
	@echo 'make man        manual pages, into $(BUILD)/man'
	@echo 'make demo       set-up, then the main job on both devices'
	@echo 'make check      set-up, then all tests; its parts are:'
	@echo '  make check-native | check-static | check-vm KERNEL=6.1|6.12|7.2|debug|kcsan'
	@echo 'make check-all  the same on all of $(ALL_KERNELS)'
	@echo 'make check-asan | check-tsan   the selftests on the embedded device, under sanitizers'
	@echo 'make soak       everything at once in a VM, MINUTES=$(MINUTES) KERNEL=$(KERNEL)'
	@echo 'make storm      10 000 processes killed or stopped in traffic in a VM, KERNEL=$(KERNEL)'
	@echo 'make fuzz       fuzz targets, into $(BUILD)/fuzz; make fuzz-quick: two minutes of all of them'
	@echo 'make bench      set-up, then all benchmarks; writes the tables of Documentation/performance.rst'
	@echo 'make bench-quick   some of them, in two minutes; prints the tables'
	@echo 'make layout     which cache lines a message touches, into Documentation/layout.rst'
	@echo 'make install    DESTDIR= PREFIX=/usr/local'
	@echo 'make vm-shell   a shell in a VM with everything loaded'
	@echo 'make clean      remove $(BUILD)/; make distclean: and the cache'
	@echo 'Variables: BUILD=$(BUILD) HAMLYN_CACHE=$(HAMLYN_CACHE) CC CFLAGS KERNELS'

all: lib am examples tools

# ---- library ----

LIB_SO := $(BUILD)/libhamlyn.so.$(VERSION)

lib: $(BUILD)/libhamlyn.a $(BUILD)/libhamlyn.so

$(BUILD)/obj/lib/%.o: libhamlyn/src/%.c $(LIB_HDR) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/src -Idriver/core $(CFLAGS_ALL) -fPIC -fno-semantic-interposition -c $< -o $@

# Call backs may be left by an exception: that ends what they have begun
$(BUILD)/obj/lib/ready.o: CFLAGS_ALL += -fexceptions

$(BUILD)/libhamlyn.a: $(LIB_OBJ)
	rm -f $@
	$(AR) rcs $@ $^

$(LIB_SO): $(LIB_OBJ) libhamlyn/libhamlyn.map
	$(CC) -shared -Wl,-soname,libhamlyn.so.$(SOVERSION) -Wl,--no-undefined -Wl,-z,nodelete \
		-Wl,--version-script=libhamlyn/libhamlyn.map $(LDFLAGS) \
		$(LIB_OBJ) -o $@ -lpthread

$(BUILD)/libhamlyn.so: $(LIB_SO)
	ln -sf $(<F) $(BUILD)/libhamlyn.so.$(SOVERSION)
	ln -sf libhamlyn.so.$(SOVERSION) $@

# ---- Active Messages ----

AM_SRC := $(wildcard libhamlyn/am/*.c)
AM_HDR := $(wildcard libhamlyn/am/*.h libhamlyn/am/include/*.h)
AM_OBJ := $(AM_SRC:libhamlyn/am/%.c=$(BUILD)/obj/am/%.o)
AM_SO := $(BUILD)/libhamlyn-am.so.$(VERSION)
# PMIx is loaded when a program is started with it; only its header is needed here.
am_cppflags = $(CPPFLAGS_ALL) -Ilibhamlyn/am -Ilibhamlyn/am/include \
	$(shell pkg-config --exists pmix && echo -DHAVE_PMIX && pkg-config --cflags-only-I pmix)
# Handlers have the type that their kind of message says; see arrive.c.
am_cflags = $(CFLAGS_ALL) -Wno-cast-function-type

am: $(BUILD)/libhamlyn-am.a $(BUILD)/libhamlyn-am.so $(BUILD)/hamlyn-run am-tools

$(BUILD)/obj/am/%.o: libhamlyn/am/%.c $(AM_HDR) $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(am_cppflags) $(am_cflags) -fPIC -fno-semantic-interposition -c $< -o $@

$(BUILD)/libhamlyn-am.a: $(AM_OBJ)
	rm -f $@
	$(AR) rcs $@ $^

$(AM_SO): $(AM_OBJ) $(LIB_SO) libhamlyn/am/libhamlyn-am.map
	$(CC) -shared -Wl,-soname,libhamlyn-am.so.$(SOVERSION) -Wl,--no-undefined \
		-Wl,--version-script=libhamlyn/am/libhamlyn-am.map $(LDFLAGS) \
		$(AM_OBJ) $(LIB_SO) -o $@ -ldl -lpthread

$(BUILD)/libhamlyn-am.so: $(AM_SO)
	ln -sf $(<F) $(BUILD)/libhamlyn-am.so.$(SOVERSION)
	ln -sf libhamlyn-am.so.$(SOVERSION) $@

# The papers' test programs. Static, so that they run in the guest: then start-up is PMI's.
AM_TOOLS := $(patsubst tools/am/%.c,$(BUILD)/am/%,$(wildcard tools/am/*.c))
AM_SHARED_OBJ := $(patsubst tools/am/%.c,$(BUILD)/obj/am-tools/%.o,$(wildcard tools/am/lib/*.c))
AM_LIBS := $(BUILD)/libhamlyn-am.a $(BUILD)/libhamlyn.a

$(BUILD)/obj/am-tools/%.o: tools/am/%.c $(wildcard tools/am/lib/*.h) $(AM_HDR)
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -Itools/am/lib -Ilibhamlyn/am/include $(CPPFLAGS) $(am_cflags) -c $< -o $@

$(AM_TOOLS): $(BUILD)/am/%: $(BUILD)/obj/am-tools/%.o $(AM_SHARED_OBJ) $(AM_LIBS)
	@mkdir -p $(@D)
	$(CC) -static $^ $(LDFLAGS) -lm -lpthread -o $@

# Tests of the engine; one with a fabric of its own between it and the device.
AM_TESTS := $(addprefix $(BUILD)/,am/rules am/loss am/compat am/engine am/shared am/exactly_once_lossy boot_peer)

$(BUILD)/am/rules $(BUILD)/am/loss: $(BUILD)/am/%: selftests/am/%.c $(AM_LIBS) $(AM_HDR) $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(am_cppflags) $(am_cflags) -static $< $(AM_LIBS) $(LDFLAGS) -lpthread -o $@

$(BUILD)/am/exactly_once_lossy: selftests/am/fabric.c $(AM_SRC) $(AM_HDR) $(LIB_HDR) \
		$(AM_SHARED_OBJ) $(BUILD)/obj/am-tools/exactly_once.o $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/am -Ilibhamlyn/am/include -DHAMLYN_AM_TEST_WIRE \
		$(am_cflags) -static $(filter %.c %.o %.a,$^) $(LDFLAGS) -lm -lpthread -o $@

# As users of it compile theirs: words of other types than the handlers say, as ever.
$(BUILD)/am/compat: selftests/am/compat.c $(AM_LIBS) $(AM_HDR) $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) -Ilibhamlyn/am/include $(CPPFLAGS) -std=gnu11 -Wall -Wextra $(CFLAGS) -static $< \
		$(AM_LIBS) $(LDFLAGS) -lpthread -o $@

# What it sends is noted.
$(BUILD)/am/engine: selftests/am/engine.c $(AM_SRC) $(AM_HDR) $(LIB_HDR) $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/am -Ilibhamlyn/am/include -DHAMLYN_AM_TEST_WIRE \
		$(am_cflags) -static $(filter %.c %.a,$^) $(LDFLAGS) -lpthread -o $@

# Loaded to a random place, with libraries.
$(BUILD)/am/shared: selftests/am/shared.c $(BUILD)/libhamlyn-am.so $(BUILD)/libhamlyn.so $(AM_HDR)
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -Ilibhamlyn/am/include $(CPPFLAGS) $(am_cflags) -fPIE -pie $< \
		-Wl,--no-as-needed $(filter %.so,$^) -Wl,-rpath,'$$ORIGIN/..' $(LDFLAGS) -o $@

$(BUILD)/boot_peer: selftests/am/boot_peer.c $(wildcard libhamlyn/am/boot*) libhamlyn/am/pmi_line.h
	@mkdir -p $(@D)
	$(CC) $(am_cppflags) $(am_cflags) $(filter %.c,$^) $(LDFLAGS) -ldl -lpthread -o $@

am-tests: am $(AM_TESTS)

am-tools: $(AM_TOOLS) $(BUILD)/am/hamlyn-run

# Where the tests look for all of them.
$(BUILD)/am/hamlyn-run: $(BUILD)/hamlyn-run
	@mkdir -p $(@D)
	ln -sf ../hamlyn-run $@

RUN_OBJ := $(patsubst tools/hamlyn-run/%.c,$(BUILD)/obj/run/%.o,$(wildcard tools/hamlyn-run/*.c))

$(BUILD)/obj/run/%.o: tools/hamlyn-run/%.c $(wildcard tools/hamlyn-run/*.h libhamlyn/am/*.h)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/am -DHAMLYN_VERSION='"$(VERSION)"' $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/hamlyn-run: $(RUN_OBJ)
	$(CC) $(RUN_OBJ) $(LDFLAGS) -o $@

# ---- examples and tools: static libhamlyn, so that they run from anywhere ----

examples: $(EXAMPLES)
tools: $(BUILD)/hamlyn-perf $(BUILD)/as_user $(BUILD)/hamlynctl

NEEDS_NETTLE := receive_file send_file
$(addprefix $(BUILD)/,$(NEEDS_NETTLE)): LIBS := -lnettle

$(EXAMPLES): $(BUILD)/%: libhamlyn/examples/%.c $(BUILD)/libhamlyn.a $(LIB_HDR) \
		$(wildcard libhamlyn/examples/*.h)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $< $(BUILD)/libhamlyn.a $(LDFLAGS) $(LIBS) -lpthread -o $@

$(BUILD)/obj/perf/%.o: tools/hamlyn-perf/%.c $(wildcard tools/hamlyn-perf/*.h) $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -DHAMLYN_VERSION='"$(VERSION)"' $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/hamlyn-perf: $(PERF_OBJ) $(BUILD)/libhamlyn.a
	$(CC) $(PERF_OBJ) $(BUILD)/libhamlyn.a $(LDFLAGS) -lpthread -lm -o $@

# hamlyn-perf's tests over MPI, with each MPI whose compiler is installed
PEERS := $(if $(shell command -v mpicc.openmpi),$(BUILD)/hamlyn-perf-openmpi) \
	$(if $(shell command -v mpicc.mpich),$(BUILD)/hamlyn-perf-mpich)
peers: $(PEERS)
	@echo 'peers: $(if $(strip $(PEERS)),$(notdir $(PEERS)),none: neither mpicc.openmpi nor mpicc.mpich is installed)'

$(BUILD)/hamlyn-perf-%: tools/hamlyn-perf/mpi/pingpong.c $(wildcard tools/hamlyn-perf/*.h) \
		$(addprefix tools/hamlyn-perf/,payload.c stats.c fail.c)
	@mkdir -p $(@D)
	OMPI_CC=$(CC) MPICH_CC=$(CC) mpicc.$* $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(filter %.c,$^) \
		$(LDFLAGS) -lm -o $@

# The flags of the libraries are asked for only when they are needed.
ctl_cflags = -Iuapi -D_GNU_SOURCE -DHAMLYN_VERSION='"$(VERSION)"' \
	$(shell pkg-config --cflags-only-I $(CTL_PKGS)) $(CPPFLAGS)
ctl_libs = $(shell pkg-config --libs $(CTL_PKGS))

$(BUILD)/obj/ctl/%.o: tools/hamlynctl/%.c $(CTL_HDR)
	@mkdir -p $(@D)
	$(CC) $(ctl_cflags) $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/hamlynctl: $(CTL_OBJ)
	$(CC) $(CTL_OBJ) $(LDFLAGS) $(ctl_libs) -o $@

# For selftests/hamlynctl-test.sh in the guest: something to administrate, a terminal.
$(BUILD)/hamlynctl-peer: tools/hamlynctl/test/peer.c $(BUILD)/libhamlyn.a $(LIB_HDR)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -static $< $(BUILD)/libhamlyn.a -lpthread -o $@

$(BUILD)/hamlynctl-pty: tools/hamlynctl/test/pty.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -static $< -o $@

# With what run.sh has to put into the guest.
CTL_TEST := $(addprefix $(BUILD)/,hamlynctl hamlynctl-peer hamlynctl-pty)
hamlynctl-test: $(CTL_TEST)

$(BUILD)/as_user: tools/demo/as_user.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -static $< -o $@

# ---- manual: section 3 from the headers, section 7 by hand ----

MAN_SRC := $(wildcard libhamlyn/man/*) libhamlyn/libhamlyn.map libhamlyn/am/libhamlyn-am.map \
	$(wildcard libhamlyn/include/*.h libhamlyn/include/hamlyn/*.h uapi/linux/*.h \
	libhamlyn/am/include/*.h)

man: $(BUILD)/man/stamp

$(BUILD)/man/stamp: $(MAN_SRC)
	@mkdir -p $(@D)
	libhamlyn/man/gen.py --version $(VERSION) $(@D)
	@touch $@

# ---- module ----

ifdef KDIR
MODULE_FOR := $(abspath $(KDIR))
MODULE_OUT := $(BUILD)/kdir
else
MODULE_FOR := $(KERNEL)
MODULE_OUT := $(BUILD)/k$(KERNEL)
endif

modules:
ifndef KDIR
	@selftests/setup.sh packages vm
	@selftests/setup.sh kernel $(KERNEL)
endif
	selftests/vm/build-module.sh $(MODULE_FOR) . $(MODULE_OUT) $(KBUILD_ARGS)
	cp $(MODULE_OUT)/hamlyn.ko $(BUILD)/hamlyn.ko

# ---- tests ----

KSELFTEST := $(HAMLYN_CACHE)/kselftest

$(KSELFTEST)/kselftest_harness.h:
	selftests/setup.sh kselftest

# Static, so that they run in the guest; the sanitizers want it otherwise.
TEST_LINK ?= -static
$(BUILD)/selftests/%: selftests/%.c selftests/hamlyn_test.c $(wildcard selftests/*.h) \
		$(BUILD)/libhamlyn.a $(LIB_HDR) | $(KSELFTEST)/kselftest_harness.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -isystem $(KSELFTEST) -std=gnu11 -Wall -Wextra $(CFLAGS) $(TEST_LINK) \
		$< selftests/hamlyn_test.c $(BUILD)/libhamlyn.a -lpthread -o $@

# Makes what the dead leave behind.
$(BUILD)/selftests/crowd: private CPPFLAGS_ALL += -Ilibhamlyn/src -Idriver/core

selftests: $(call test_bins,$(TESTS_BOTH) $(TESTS_SHM) $(TESTS_KERNEL) $(TESTS_DEBUG))

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
$(BUILD)/unit/%: selftests/unit/%.c $(wildcard selftests/unit/*.h) $(CORE) $(LIB_HDR) $(AM_SRC) $(AM_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/src -Idriver/core -std=gnu11 -Wall -Wextra -Wshadow \
		-O1 -g $(SANITIZE) $< -lcmocka -lpthread -o $@

# The whole of hamlynctl with a kernel that is made up.
CTL_UNIT_OBJ := $(CTL_SRC:tools/hamlynctl/%.c=$(BUILD)/obj/ctl-unit/%.o)
ctl_unit_cflags = $(ctl_cflags) -std=gnu11 -Wall -Wextra -Wshadow -O1 -g $(SANITIZE)

$(BUILD)/obj/ctl-unit/%.o: tools/hamlynctl/%.c $(CTL_HDR)
	@mkdir -p $(@D)
	$(CC) $(ctl_unit_cflags) -Dmain=ctl_main -c $< -o $@

$(BUILD)/unit/unit_hamlynctl: tools/hamlynctl/test/unit_hamlynctl.c tools/hamlynctl/test/unit.h \
		$(CTL_UNIT_OBJ)
	@mkdir -p $(@D)
	$(CC) $(ctl_unit_cflags) $< $(CTL_UNIT_OBJ) -o $@ $(ctl_libs) -lcmocka \
		-Wl,--wrap=genl_ctrl_resolve,--wrap=nl_send_auto,--wrap=nl_recvmsgs

units: $(UNITS) $(BUILD)/unit/unit_hamlynctl

# Fuzz targets: fuzz, fuzz-quick.
include selftests/fuzz/Makefile

# For scripts: the programs of a list of tests.
print-%:
	@echo $(call test_bins,$($*))

setup-native:
	@selftests/setup.sh packages native

check: ; @selftests/check.sh all --minutes $(CHECK_MINUTES) $(KERNELS)
check-all: ; @selftests/check.sh all $(ALL_KERNELS)
check-native: ; @selftests/check.sh native
check-static: ; @selftests/check.sh static
check-vm: ; @selftests/check.sh vm $(KERNEL)
check-asan: ; @selftests/check.sh asan
check-tsan: ; @selftests/check.sh tsan

MINUTES ?= 60
soak:
	@selftests/setup.sh packages native
	@selftests/setup.sh packages vm
	@selftests/setup.sh qemu
	@selftests/setup.sh kernel $(KERNEL)
	@selftests/setup.sh kselftest
	@BUILD=$(BUILD) selftests/soak.sh --kernel $(KERNEL) --minutes $(MINUTES)

storm:
	@BUILD=$(BUILD) selftests/check.sh storm $(KERNEL)

# ---- benchmarks: sections, and where their results are: tools/bench/bench.sh --help ----

$(BUILD)/selfping: tools/bench/selfping.c $(BUILD)/libhamlyn.a $(LIB_HDR)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $< $(BUILD)/libhamlyn.a $(LDFLAGS) -lpthread -o $@

# Sections that fail do not keep the others' tables from being written
bench:
	@rc=0; BUILD=$(BUILD) tools/bench/bench.sh $(SECTIONS) || rc=$$?; \
	tools/bench/report.py $(BUILD)/bench --update Documentation/performance.rst \
		--keep Documentation/bench && exit $$rc

bench-quick:
	@rc=0; BUILD=$(BUILD) tools/bench/bench.sh --quick $(SECTIONS) || rc=$$?; \
	tools/bench/report.py $(BUILD)/bench-quick && exit $$rc

# No position independence, so that the trace names the addresses of nm.
$(BUILD)/layout-subject: tools/layout/subject.c $(BUILD)/libhamlyn.a $(LIB_HDR) $(CORE)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/src -Idriver/core $(CFLAGS_ALL) -fno-pie -no-pie -static \
		$< $(BUILD)/libhamlyn.a -lpthread -o $@

layout: $(BUILD)/layout-subject
	@selftests/setup.sh packages native
	@selftests/setup.sh packages vm
	@$(MAKE) --no-print-directory -s modules KERNEL=$(KERNEL)
	@tools/layout/layout.py $(BUILD) --update Documentation/layout.rst

demo:
	@selftests/setup.sh packages native
	@selftests/setup.sh packages vm
	@selftests/setup.sh qemu
	@$(MAKE) --no-print-directory -s all
	@$(MAKE) --no-print-directory -s modules KERNEL=$(KERNEL)
	@tools/demo/demo.sh --build $(BUILD) --kernel $(KERNEL)

vm-shell:
	@selftests/setup.sh packages all
	@selftests/setup.sh qemu
	@$(MAKE) --no-print-directory -s all selftests modules
	@BUILD=$(BUILD) selftests/vm/shell.sh $(KERNEL) --module $(BUILD)/hamlyn.ko

# ---- installation ----

install: lib am man $(BUILD)/hamlynctl $(BUILD)/hamlyn-perf
	install -d "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(INCLUDEDIR)/linux"
	install -m 644 $(BUILD)/libhamlyn.a "$(DESTDIR)$(LIBDIR)/"
	install -m 755 $(LIB_SO) "$(DESTDIR)$(LIBDIR)/"
	ln -sf libhamlyn.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn.so.$(SOVERSION)"
	ln -sf libhamlyn.so.$(SOVERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn.so"
	install -m 644 libhamlyn/include/hamlyn.h "$(DESTDIR)$(INCLUDEDIR)/"
	install -d "$(DESTDIR)$(INCLUDEDIR)/hamlyn"
	install -m 644 libhamlyn/include/hamlyn/*.h* "$(DESTDIR)$(INCLUDEDIR)/hamlyn/"
	install -m 644 uapi/linux/hamlyn.h uapi/linux/hamlyn_netlink.h \
		"$(DESTDIR)$(INCLUDEDIR)/linux/"
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' \
		libhamlyn/libhamlyn.pc.in > "$(DESTDIR)$(LIBDIR)/pkgconfig/libhamlyn.pc"
	install -m 644 $(BUILD)/libhamlyn-am.a "$(DESTDIR)$(LIBDIR)/"
	install -m 755 $(AM_SO) "$(DESTDIR)$(LIBDIR)/"
	ln -sf libhamlyn-am.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn-am.so.$(SOVERSION)"
	ln -sf libhamlyn-am.so.$(SOVERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn-am.so"
	install -m 644 libhamlyn/am/include/*.h "$(DESTDIR)$(INCLUDEDIR)/"
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' \
		libhamlyn/am/libhamlyn-am.pc.in > "$(DESTDIR)$(LIBDIR)/pkgconfig/libhamlyn-am.pc"
	install -D -m 644 libhamlyn/tsan.suppressions "$(DESTDIR)$(DATADIR)/hamlyn/tsan.suppressions"
	install -D -m 755 $(BUILD)/hamlyn-run "$(DESTDIR)$(BINDIR)/hamlyn-run"
	install -D -m 644 tools/hamlyn-run/hamlyn-run.1 "$(DESTDIR)$(MANDIR)/man1/hamlyn-run.1"
	install -D -m 755 $(BUILD)/hamlynctl "$(DESTDIR)$(SBINDIR)/hamlynctl"
	install -D -m 644 tools/hamlynctl/hamlynctl.8 "$(DESTDIR)$(MANDIR)/man8/hamlynctl.8"
	install -D -m 755 $(BUILD)/hamlyn-perf "$(DESTDIR)$(BINDIR)/hamlyn-perf"
	install -D -m 644 tools/hamlyn-perf/hamlyn-perf.1 "$(DESTDIR)$(MANDIR)/man1/hamlyn-perf.1"
	install -D -m 644 tools/hamlynctl/hamlynctl.bash-completion \
		"$(DESTDIR)$(COMPLETIONDIR)/hamlynctl"
	install -d "$(DESTDIR)$(MANDIR)/man3" "$(DESTDIR)$(MANDIR)/man7"
	install -m 644 $(BUILD)/man/man3/* "$(DESTDIR)$(MANDIR)/man3/"
	install -m 644 $(BUILD)/man/man7/* "$(DESTDIR)$(MANDIR)/man7/"
	install -d "$(DESTDIR)$(PYTHONDIR)/hamlyn"
	install -m 644 libhamlyn/python/hamlyn/*.py libhamlyn/python/hamlyn/py.typed \
		"$(DESTDIR)$(PYTHONDIR)/hamlyn/"

clean:
	rm -rf $(BUILD)

distclean: clean
	rm -rf $(HAMLYN_CACHE)

.PHONY: all lib am am-tools am-tests examples tools man peers hamlynctl-test modules selftests units setup-native check soak storm \
	check-all check-native check-static check-vm check-asan check-tsan bench bench-quick layout demo vm-shell install clean distclean help

endif
