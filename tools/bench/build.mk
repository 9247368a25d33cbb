# SPDX-License-Identifier: GPL-2.0-only
#
# Sections, and where their results are: tools/bench/bench.sh --help
#: make bench      set-up, then all benchmarks; writes the tables of Documentation/performance.rst
#: make bench-quick   some of them, in two minutes; prints the tables
$(BUILD)/selfping: tools/bench/selfping.c $(BUILD)/libhamlyn.a $(LIB_HDR)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $< $(BUILD)/libhamlyn.a $(LDFLAGS) -lpthread -o $@

# Jacobi's method on two nodes, by Stache, by pages and by messages: all print their results.
JACOBI := $(patsubst %,$(BUILD)/jacobi/jacobi-%,stache stache-plain pages messages)
JACOBI_FLAGS = $(CPPFLAGS_ALL) -Ilibhamlyn/am/include $(STACHE_INC) -std=gnu11 -O3 -g -Wall -Wextra -fno-pie
JACOBI_LIBS = $(BUILD)/libhamlyn-stache.a $(BUILD)/libhamlyn-tempest.a $(BUILD)/libhamlyn.a
JACOBI_LINK = $(JACOBI_LIBS) $(LDFLAGS) -lpthread -ldl
JACOBI_SRC = tools/bench/jacobi/jacobi.c tools/bench/jacobi/system.h

$(BUILD)/jacobi/jacobi-stache: tools/bench/jacobi/stache.c $(JACOBI_SRC) $(JACOBI_LIBS) \
		$(BUILD)/tempest-cc/hamlyn-tempest-cc $(TEMPEST_CC_INC)/tempest.h
	@mkdir -p $(@D)
	$(BUILD)/tempest-cc/hamlyn-tempest-cc $(JACOBI_FLAGS) -static $(filter %.c,$^) $(JACOBI_LINK) -o $@

$(BUILD)/jacobi/jacobi-stache-plain: tools/bench/jacobi/stache.c $(JACOBI_SRC) $(JACOBI_LIBS)
	@mkdir -p $(@D)
	$(CC) $(JACOBI_FLAGS) -static $(filter %.c,$^) $(JACOBI_LINK) -o $@

$(BUILD)/jacobi/jacobi-pages: tools/bench/jacobi/page.c $(JACOBI_SRC) $(JACOBI_LIBS)
	@mkdir -p $(@D)
	$(CC) $(JACOBI_FLAGS) -static $(filter %.c,$^) $(JACOBI_LINK) -o $@

$(BUILD)/jacobi/jacobi-messages: tools/bench/jacobi/messages.c $(JACOBI_SRC) $(BUILD)/libhamlyn-am.a \
		$(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(JACOBI_FLAGS) -static $(filter %.c %.a,$^) $(LDFLAGS) -lpthread -o $@

#: make bench-jacobi | bench-tempest   Stache beside pages and messages; what Tempest costs
bench-jacobi: $(JACOBI) $(BUILD)/hamlyn-run
	tools/bench/jacobi/run.sh $(BUILD)

# Also as nodes, threads and segment grow; fails if a gate is not kept.
bench-tempest: tempest-tests
	tools/bench/tempest.py --build $(BUILD)

# Sections that fail do not keep the others' tables from being written
bench:
	@rc=0; BUILD=$(BUILD) tools/bench/bench.sh $(SECTIONS) || rc=$$?; \
	tools/bench/report.py $(BUILD)/bench --update Documentation/performance.rst \
		--keep Documentation/bench && exit $$rc

bench-quick:
	@rc=0; BUILD=$(BUILD) tools/bench/bench.sh --quick $(SECTIONS) || rc=$$?; \
	tools/bench/report.py $(BUILD)/bench-quick && exit $$rc

# Beside sockets, ZeroMQ, nng and D-Bus; writes the table of Documentation/jobs.rst
bench-jobs: $(BUILD)/libhamlyn.a
	tools/bench/jobs.py --build $(BUILD) --write

.PHONY: bench bench-quick bench-jacobi bench-tempest bench-jobs
