# SPDX-License-Identifier: GPL-2.0-only
#
#: make layout     which cache lines a message touches, into Documentation/layout.rst
# No position independence, so that the trace names the addresses of nm.
$(BUILD)/layout-subject: tools/layout/subject.c $(BUILD)/libhamlyn.a $(LIB_HDR) $(CORE)
	$(CC) $(CPPFLAGS_ALL) $(LIB_INC) $(CFLAGS_ALL) -fno-pie -no-pie -static \
		$< $(BUILD)/libhamlyn.a -lpthread -o $@

layout: $(BUILD)/layout-subject
	@selftests/setup.sh packages native
	@selftests/setup.sh packages vm
	@$(MAKE) --no-print-directory -s modules KERNEL=$(KERNEL)
	@tools/layout/layout.py $(BUILD) --update Documentation/layout.rst

.PHONY: layout
