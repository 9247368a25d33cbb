# SPDX-License-Identifier: GPL-2.0-only
#
# Programs against the public interface.
#: make check      set-up, then all tests; its parts are:
#:   make check-native | check-static | check-vm KERNEL=6.1|6.12|7.2|debug|kcsan
#: make check-all  everything with every engine on all kernels, and what takes long
#: make check-asan | check-tsan | check-plain   under sanitizers; where namespaces are refused
#: make soak       everything at once in a VM, MINUTES=60 KERNEL=6.1
#: make storm      10 000 processes killed or stopped in traffic in a VM, KERNEL=6.1
#: make vm-shell   a shell in a VM with everything loaded
# Tests: the folder of a program says which device it is for, so that a new one needs no line here.
TESTS_SHM := $(wildcard selftests/embedded/*.c)
# Random calls, faults at every allocation, and what needs a disk: run by name, in machines of their own.
TESTS_DEBUG := $(wildcard selftests/kernel/faults/*.c selftests/kernel/memory/on_disk.c)
TESTS_KERNEL := $(filter-out $(TESTS_DEBUG),$(wildcard selftests/kernel/*/*.c))
TESTS_BOTH := $(wildcard selftests/low/*.c selftests/upper/*/*.c)
TESTS := $(TESTS_BOTH) $(TESTS_SHM) $(TESTS_KERNEL) $(TESTS_DEBUG)
# Sources of tests become programs, all in one folder: their names are unique.
test_bins = $(foreach t,$(1),$(if $(filter %.c,$t),$(BUILD)/selftests/$(basename $(notdir $t)),$t))

KSELFTEST := $(HAMLYN_CACHE)/kselftest

$(KSELFTEST)/kselftest_harness.h:
	selftests/setup.sh kselftest

# Static, so that they run in the guest; the sanitizers want it otherwise.
TEST_LINK ?= -static
TEST_HDR := $(wildcard selftests/lib/*.h selftests/embedded/*.h selftests/kernel/*/*.h selftests/upper/*/*.h)
TEST_COMPILE = $(CC) $(CPPFLAGS_ALL) -Iselftests/lib -isystem $(KSELFTEST) -std=gnu11 -Wall -Wextra $(CFLAGS) $(TEST_FAST)
# What is inline in the library's headers is tried as programs have it by the programs of low/ and
# kernel/engine/. For the others it would be two minutes of the compiler's, which their runs do not gain.
ifeq ($(origin CFLAGS),file)
$(call test_bins,$(filter-out selftests/low/% selftests/kernel/engine/%,$(TESTS))): private TEST_FAST := -O0 -g1
endif
TEST_OBJ := $(patsubst selftests/%.c,$(BUILD)/obj/selftests/%.o,$(wildcard selftests/lib/*.c))

$(BUILD)/obj/selftests/%.o: selftests/%.c $(TEST_HDR) $(LIB_HDR) | $(KSELFTEST)/kselftest_harness.h
	@mkdir -p $(@D)
	$(TEST_COMPILE) -c $< -o $@

$(foreach t,$(TESTS),$(eval $(call test_bins,$t): $t))
$(call test_bins,$(TESTS)): $(TEST_OBJ) $(TEST_HDR) $(BUILD)/libhamlyn.a $(LIB_HDR) \
		| $(KSELFTEST)/kselftest_harness.h
	@mkdir -p $(@D)
	$(TEST_COMPILE) $(TEST_LINK) $(filter selftests/%.c driver/core/%.c,$^) $(TEST_OBJ) \
		$(BUILD)/libhamlyn.a -lpthread -o $@

# They make what the dead leave behind, hold the locks of the library, or count what it keeps.
TESTS_INSIDE := $(shell grep -lE '^#include "((low|embedded|manager|stream|channel)/|refused_watch\.h|bridge_hosts\.h|used_tags\.h)' $(TESTS))
$(call test_bins,$(TESTS_INSIDE)): private CPPFLAGS_ALL += $(LIB_INC)

selftests: $(call test_bins,$(TESTS))

$(BUILD)/plain: selftests/tools/plain.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -std=gnu11 -Wall -Wextra $(CFLAGS) $< $(LDFLAGS) -o $@

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
check-plain: ; @selftests/check.sh plain

MINUTES ?= 60
soak:
	@selftests/setup.sh packages native
	@selftests/setup.sh packages vm
	@selftests/setup.sh qemu
	@selftests/setup.sh kernel $(KERNEL)
	@selftests/setup.sh kselftest
	@BUILD=$(BUILD) selftests/kernel/soak.sh --kernel $(KERNEL) --minutes $(MINUTES)

storm:
	@BUILD=$(BUILD) selftests/check.sh storm $(KERNEL)

vm-shell:
	@selftests/setup.sh packages native
	@selftests/setup.sh packages vm
	@selftests/setup.sh qemu
	@$(MAKE) --no-print-directory -s all selftests modules
	@BUILD=$(BUILD) selftests/vm/shell.sh $(KERNEL) --module $(BUILD)/hamlyn.ko

.PHONY: selftests setup-native check check-all check-native check-static check-vm check-asan \
	check-tsan check-plain soak storm vm-shell
