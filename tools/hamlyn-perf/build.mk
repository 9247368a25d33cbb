# SPDX-License-Identifier: GPL-2.0-only
#: make peers      hamlyn-perf over MPI, to compare with, into build/
PERF_FOLDERS := tools/hamlyn-perf $(addprefix tools/hamlyn-perf/,base load system measure report command)
PERF_OBJ := $(patsubst tools/hamlyn-perf/%.c,$(BUILD)/obj/perf/%.o,$(sort $(wildcard $(PERF_FOLDERS:=/*.c))))
PERF_HDR := $(wildcard $(PERF_FOLDERS:=/*.h))

tools: $(BUILD)/hamlyn-perf

# Other people's libraries are loaded, not linked with: their headers say whether they can be.
perf_has = $(shell printf '\043include <%s>\n' $(1) | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 && echo -DHAVE_$(2))
$(BUILD)/obj/perf/system/sys_zeromq.o: PERF_HAS = $(call perf_has,zmq.h,ZEROMQ)
$(BUILD)/obj/perf/system/sys_nng.o: PERF_HAS = $(call perf_has,nng/protocol/pair0/pair.h,NNG)
$(BUILD)/obj/perf/system/sys_dbus.o: PERF_HAS = $(call perf_has,systemd/sd-bus.h,DBUS)
$(BUILD)/obj/perf/system/sys_ucx_tag.o: PERF_HAS = $(call perf_has,ucp/api/ucp.h,UCP)

$(BUILD)/obj/perf/%.o: tools/hamlyn-perf/%.c $(PERF_HDR) $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Itools/hamlyn-perf -DHAMLYN_VERSION='"$(VERSION)"' $(PERF_HAS) $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/hamlyn-perf: $(PERF_OBJ) $(BUILD)/libhamlyn.a
	$(CC) $(PERF_OBJ) $(BUILD)/libhamlyn.a $(LDFLAGS) -lpthread -lm -ldl -o $@

# hamlyn-perf's tests over MPI, with each MPI whose compiler is installed
PEERS := $(if $(shell command -v mpicc.openmpi),$(BUILD)/hamlyn-perf-openmpi) \
	$(if $(shell command -v mpicc.mpich),$(BUILD)/hamlyn-perf-mpich)
peers: $(PEERS)
	@echo 'peers: $(if $(strip $(PEERS)),$(notdir $(PEERS)),none: neither mpicc.openmpi nor mpicc.mpich is installed)'

$(BUILD)/hamlyn-perf-%: tools/hamlyn-perf/mpi/pingpong.c $(PERF_HDR) \
		$(addprefix tools/hamlyn-perf/base/,payload.c stats.c fail.c)
	@mkdir -p $(@D)
	OMPI_CC=$(CC) MPICH_CC=$(CC) mpicc.$* $(CPPFLAGS_ALL) -Itools/hamlyn-perf $(CFLAGS_ALL) $(filter %.c,$^) \
		$(LDFLAGS) -lm -o $@

install: install-perf
install-perf: $(BUILD)/hamlyn-perf
	install -D -m 755 $(BUILD)/hamlyn-perf "$(DESTDIR)$(BINDIR)/hamlyn-perf"
	install -D -m 644 tools/hamlyn-perf/hamlyn-perf.1 "$(DESTDIR)$(MANDIR)/man1/hamlyn-perf.1"

.PHONY: peers install-perf
