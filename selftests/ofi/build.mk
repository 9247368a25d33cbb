# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of the libfabric provider, programs of libfabric's public calls alone.
OFI_TESTS := $(patsubst selftests/ofi/ofi_%.c,$(BUILD)/ofi/ofi_%,$(wildcard selftests/ofi/ofi_*.c))

# They speak the provider's protocol, and so have a library of their own.
$(BUILD)/ofi/ofi_hostile $(BUILD)/ofi/stranger: $(BUILD)/ofi/%: selftests/ofi/%.c selftests/ofi/pair.c selftests/ofi/pair.h $(OFI_HDR) \
		$(OFI_SO) $(BUILD)/libhamlyn.a | $(KSELFTEST)/kselftest_harness.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/ofi/src -Iselftests/ofi -isystem $(KSELFTEST) -std=gnu11 -Wall -Wextra $(CFLAGS) \
		$(shell $(PKG_CONFIG) --cflags libfabric) $(filter selftests/%.c,$^) $(BUILD)/libhamlyn.a \
		$(LDFLAGS) $(shell $(PKG_CONFIG) --libs libfabric) -lpthread -o $@

$(filter-out %/ofi_hostile,$(OFI_TESTS)): $(BUILD)/ofi/%: selftests/ofi/%.c selftests/ofi/pair.c selftests/ofi/pair.h $(OFI_SO) \
		| $(KSELFTEST)/kselftest_harness.h
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE $(CPPFLAGS) -Iselftests/ofi -isystem $(KSELFTEST) -std=gnu11 -Wall -Wextra \
		$(CFLAGS) $(shell $(PKG_CONFIG) --cflags libfabric) $(filter %.c,$^) $(LDFLAGS) \
		$(shell $(PKG_CONFIG) --libs libfabric) -lpthread -o $@

$(BUILD)/ofi/traffic: selftests/ofi/traffic.c $(BUILD)/libhamlyn.a $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $< $(BUILD)/libhamlyn.a $(LDFLAGS) -lpthread -o $@

ofi-tests: $(OFI_TESTS) $(addprefix $(BUILD)/ofi/,traffic stranger)

.PHONY: ofi-tests
