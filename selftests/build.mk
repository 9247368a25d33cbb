# SPDX-License-Identifier: GPL-2.0-only
#
# Programs against the public interface.
#: make check      set-up, then all tests; its parts are:
#:   make check-native | check-static | check-vm KERNEL=6.1|6.12|7.2|debug|kcsan
#: make check-all  the same on all kernels, and what takes long
#: make check-asan | check-tsan   the selftests on the embedded device, under sanitizers
#: make soak       everything at once in a VM, MINUTES=60 KERNEL=6.1
#: make storm      10 000 processes killed or stopped in traffic in a VM, KERNEL=6.1
#: make vm-shell   a shell in a VM with everything loaded
# Tests: on both devices, on the kernel device only, on the embedded one only.
TESTS_SHM := $(filter $(wildcard selftests/*.c), \
	$(addprefix selftests/,segment.c hostile_segment.c crowd.c syscall_faults.c surroundings.c))
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

# They make what the dead leave behind, hold the locks of the library, or count what it keeps.
TESTS_INSIDE := $(shell grep -lE '^#include "(\.\./libhamlyn/src/|refused_watch\.h)' selftests/*.c)
$(call test_bins,$(TESTS_INSIDE)): private CPPFLAGS_ALL += $(LIB_INC)

selftests: $(call test_bins,$(TESTS_BOTH) $(TESTS_SHM) $(TESTS_KERNEL) $(TESTS_DEBUG))

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

vm-shell:
	@selftests/setup.sh packages all
	@selftests/setup.sh qemu
	@$(MAKE) --no-print-directory -s all selftests modules
	@BUILD=$(BUILD) selftests/vm/shell.sh $(KERNEL) --module $(BUILD)/hamlyn.ko

.PHONY: selftests setup-native check check-all check-native check-static check-vm check-asan \
	check-tsan soak storm vm-shell
