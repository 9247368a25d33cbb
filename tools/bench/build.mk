# SPDX-License-Identifier: GPL-2.0-only
#
# Sections, and where their results are: tools/bench/bench.sh --help
#: make bench      set-up, then all benchmarks; writes the tables of Documentation/performance.rst
#: make bench-quick   some of them, in two minutes; prints the tables
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

.PHONY: bench bench-quick
