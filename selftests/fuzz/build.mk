# SPDX-License-Identifier: GPL-2.0-only
#
#: make fuzz       fuzz targets, into build/fuzz; make fuzz-quick: two minutes of all of them
# Fuzz targets: included by the Makefile above, or alone: make -f selftests/fuzz/build.mk.
# libFuzzer comes with clang; all that is fuzzed is compiled for it, with ASan and UBSan.
BUILD ?= build
FUZZ := $(BUILD)/fuzz
FUZZ_CC ?= clang-14
FUZZ_DIR := selftests/fuzz

# HEAD of the table: target, and what is linked with it.
FUZZ_CORE := trb packet nq
FUZZ_ALONE := sched wire
FUZZ_LIB := ticket embedded segment stream message rendezvous settings
FUZZ_CTL := netlink cmdline
FUZZ_OFI := $(shell pkg-config --exists libfabric && echo ofi)
FUZZ_TARGETS := $(FUZZ_CORE) $(FUZZ_ALONE) $(FUZZ_LIB) $(FUZZ_CTL) am pmi link bridge $(FUZZ_OFI)
FUZZ_BINS := $(FUZZ_TARGETS:%=$(FUZZ)/%)

fuzz_sanitize := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
fuzz_includes := -D_GNU_SOURCE -DHAMLYN_VERSION='"fuzz"' -I$(FUZZ_DIR) -Iuapi -Ilibhamlyn/include \
	-Ilibhamlyn/src -Ilibhamlyn/src/embedded -iquotedriver/core
fuzz_cflags := -std=gnu11 -O1 -g -Wall -Wextra -Wno-unused-function $(fuzz_includes) \
	-fsanitize=fuzzer-no-link $(fuzz_sanitize)
fuzz_headers := $(wildcard $(FUZZ_DIR)/*.h driver/core/*.[ch] libhamlyn/src/*/*.h \
	libhamlyn/include/*.h libhamlyn/include/hamlyn/*.h uapi/linux/*.h)

fuzz: $(FUZZ_BINS) $(FUZZ)/brute-wire

fuzz-quick:
	@BUILD=$(BUILD) $(FUZZ_DIR)/run.sh quick

fuzz-print-targets:
	@echo $(FUZZ_TARGETS)

$(FUZZ)/lib/%.o: libhamlyn/src/%.c $(fuzz_headers)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(fuzz_cflags) -c $< -o $@

$(FUZZ)/libhamlyn.a: $(patsubst libhamlyn/src/%.c,$(FUZZ)/lib/%.o,$(wildcard libhamlyn/src/*/*.c))
	rm -f $@
	ar rcs $@ $^

$(FUZZ)/target/%.o: $(FUZZ_DIR)/fuzz_%.c $(fuzz_headers)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(fuzz_more) $(fuzz_cflags) -c $< -o $@

# Each load is reported to the target before it happens: see fuzz_core.h.
$(FUZZ_CORE:%=$(FUZZ)/target/%.o): fuzz_more := -fsanitize-coverage=trace-loads

$(FUZZ_CORE:%=$(FUZZ)/%) $(FUZZ_ALONE:%=$(FUZZ)/%): $(FUZZ)/%: $(FUZZ)/target/%.o
	$(FUZZ_CC) -fsanitize=fuzzer $(fuzz_sanitize) $^ -o $@

# No sanitizer and no libFuzzer: hundreds of times as fast.
$(FUZZ)/brute-wire: $(FUZZ_DIR)/brute_wire.c $(fuzz_headers)
	@mkdir -p $(@D)
	$(FUZZ_CC) -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-function $(fuzz_includes) $< -o $@

$(FUZZ_LIB:%=$(FUZZ)/%): $(FUZZ)/%: $(FUZZ)/target/%.o $(FUZZ)/libhamlyn.a
	$(FUZZ_CC) -fsanitize=fuzzer $(fuzz_sanitize) $^ -lpthread -o $@

# ---- Active Messages ----

fuzz_am := -iquotelibhamlyn/am -Ilibhamlyn/am/include -DHAMLYN_AM_TEST_WIRE -Wno-cast-function-type
$(FUZZ)/am-lib/%.o: libhamlyn/am/%.c $(wildcard libhamlyn/am/*.h) $(fuzz_headers)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(fuzz_cflags) $(fuzz_am) -c $< -o $@

$(FUZZ)/target/am.o $(FUZZ)/target/pmi.o: fuzz_more := $(fuzz_am) -Itools/hamlyn-run
$(FUZZ)/am: $(FUZZ)/target/am.o $(FUZZ)/libhamlyn.a \
		$(patsubst libhamlyn/am/%.c,$(FUZZ)/am-lib/%.o,$(wildcard libhamlyn/am/*.c))
	$(FUZZ_CC) -fsanitize=fuzzer $(fuzz_sanitize) $(filter %.o,$^) $(FUZZ)/libhamlyn.a -ldl -lpthread -o $@

# ---- the libfabric provider ----

fuzz_ofi = -Ilibhamlyn/ofi/src $(shell pkg-config --cflags libfabric)
$(FUZZ)/ofi-lib/%.o: libhamlyn/ofi/src/%.c $(wildcard libhamlyn/ofi/src/*/*.h) $(fuzz_headers)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(fuzz_cflags) $(fuzz_ofi) -c $< -o $@

$(FUZZ)/target/ofi.o: $(wildcard libhamlyn/ofi/src/*/*.h)
$(FUZZ)/target/ofi.o: fuzz_more = $(fuzz_ofi)
$(FUZZ)/ofi: $(FUZZ)/target/ofi.o $(patsubst libhamlyn/ofi/src/%.c,$(FUZZ)/ofi-lib/%.o,$(wildcard libhamlyn/ofi/src/*/*.c)) \
		$(FUZZ)/libhamlyn.a
	$(FUZZ_CC) -fsanitize=fuzzer $(fuzz_sanitize) $(filter %.o,$^) $(FUZZ)/libhamlyn.a \
		$(shell pkg-config --libs libfabric) -lpthread -o $@

# ---- hamlyn-run ----

FUZZ_RUN := pmi kvs message options hosts/hosts
$(FUZZ)/run/%.o: tools/hamlyn-run/%.c $(wildcard tools/hamlyn-run/*.h tools/hamlyn-run/hosts/*.h libhamlyn/am/*.h)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(fuzz_cflags) -Itools/hamlyn-run -Ilibhamlyn/am -c $< -o $@

$(FUZZ)/pmi: $(FUZZ)/target/pmi.o $(FUZZ_RUN:%=$(FUZZ)/run/%.o) $(FUZZ)/am-lib/boot_wire.o \
		$(FUZZ)/am-lib/boot_pmi1.o $(FUZZ)/am-lib/boot.o $(FUZZ)/am-lib/boot_alone.o \
		$(FUZZ)/am-lib/boot_pmix.o
	$(FUZZ_CC) -fsanitize=fuzzer $(fuzz_sanitize) $^ -ldl -lpthread -o $@

FUZZ_LINK := $(addprefix hosts/,far hosts launch link start)
$(FUZZ)/target/link.o: fuzz_more := -Itools/hamlyn-run
$(FUZZ)/link: $(FUZZ)/target/link.o $(FUZZ_LINK:%=$(FUZZ)/run/%.o)
	$(FUZZ_CC) -fsanitize=fuzzer $(fuzz_sanitize) $^ -o $@

# What tools share
$(FUZZ)/tools-lib/%.o: tools/lib/%.c tools/lib/%.h
	@mkdir -p $(@D)
	$(FUZZ_CC) $(fuzz_cflags) -Itools -c $< -o $@

# ---- hamlyn-bridge ----

$(FUZZ)/bridge-tool/%.o: tools/hamlyn-bridge/%.c tools/hamlyn-bridge/bridge.h $(wildcard tools/lib/*.h) $(fuzz_headers)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(fuzz_cflags) -Itools -c $< -o $@

$(FUZZ)/bridge-tool/wire.o: driver/core/wire.c $(fuzz_headers)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(fuzz_cflags) -c $< -o $@

$(FUZZ)/target/bridge.o: tools/hamlyn-bridge/bridge.h
$(FUZZ)/target/bridge.o: fuzz_more := -Itools/hamlyn-bridge
$(FUZZ)/bridge: $(FUZZ)/target/bridge.o $(FUZZ)/bridge-tool/wire.o $(FUZZ)/tools-lib/sock_owner.o $(FUZZ)/libhamlyn.a \
		$(patsubst tools/hamlyn-bridge/%.c,$(FUZZ)/bridge-tool/%.o,$(filter-out %/main.c,$(wildcard tools/hamlyn-bridge/*.c)))
	$(FUZZ_CC) -fsanitize=fuzzer $(fuzz_sanitize) $(filter %.o,$^) $(FUZZ)/libhamlyn.a -lpthread -o $@

# ---- hamlynctl ----

fuzz_ctl_pkgs := libnl-genl-3.0 libnl-3.0 json-c ncursesw
fuzz_ctl_cflags = -Itools/hamlynctl -Itools $(shell $(PKG_CONFIG) --cflags-only-I $(fuzz_ctl_pkgs))
$(FUZZ)/ctl/%.o: tools/hamlynctl/%.c $(CTL_HDR)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(fuzz_cflags) $(fuzz_ctl_cflags) -Dmain=ctl_main \
		-c $< -o $@

$(FUZZ_CTL:%=$(FUZZ)/target/%.o): fuzz_more = $(fuzz_ctl_cflags)
$(FUZZ_CTL:%=$(FUZZ)/%): $(FUZZ)/%: $(FUZZ)/target/%.o \
		$(CTL_SRC:tools/hamlynctl/%.c=$(FUZZ)/ctl/%.o) $(FUZZ)/tools-lib/sock_owner.o
	$(FUZZ_CC) -fsanitize=fuzzer $(fuzz_sanitize) $^ -o $@ \
		$(shell $(PKG_CONFIG) --libs $(fuzz_ctl_pkgs)) \
		-Wl,--wrap=genl_ctrl_resolve,--wrap=genl_ctrl_resolve_grp \
		-Wl,--wrap=nl_send_auto,--wrap=nl_recvmsgs,--wrap=nl_socket_add_membership \
		-Wl,--wrap=stop_wait,--wrap=stop_asked,--wrap=isatty

.PHONY: fuzz fuzz-quick fuzz-print-targets
