# SPDX-License-Identifier: MIT
#
# Examples have libhamlyn in them, so that they run from anywhere.
EXAMPLES := $(patsubst libhamlyn/examples/%.c,$(BUILD)/%,$(wildcard libhamlyn/examples/*.c))

examples: $(EXAMPLES)

NEEDS_NETTLE := receive_file send_file
$(addprefix $(BUILD)/,$(NEEDS_NETTLE)): LIBS := -lnettle

$(EXAMPLES): $(BUILD)/%: libhamlyn/examples/%.c $(BUILD)/libhamlyn.a $(LIB_HDR) \
		$(wildcard libhamlyn/examples/*.h)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $< $(BUILD)/libhamlyn.a $(LDFLAGS) $(LIBS) -lpthread -o $@

.PHONY: examples
