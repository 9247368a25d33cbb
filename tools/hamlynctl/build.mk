# SPDX-License-Identifier: GPL-2.0-only
CTL_FOLDERS := tools/hamlynctl $(addprefix tools/hamlynctl/,base record object watch health)
CTL_SRC := $(sort $(wildcard $(CTL_FOLDERS:=/*.c)))
CTL_OBJ := $(CTL_SRC:tools/hamlynctl/%.c=$(BUILD)/obj/ctl/%.o) $(BUILD)/obj/ctl/lib/sock_owner.o
CTL_HDR := $(wildcard $(CTL_FOLDERS:=/*.h) tools/lib/*.h uapi/linux/*.h)
CTL_PKGS := libnl-genl-3.0 libnl-3.0 json-c ncursesw

tools: $(BUILD)/hamlynctl

# The flags of the libraries are asked for only when they are needed.
ctl_cflags = -Iuapi -Itools/hamlynctl -Itools -D_GNU_SOURCE -DHAMLYN_VERSION='"$(VERSION)"' \
	$(shell $(PKG_CONFIG) --cflags-only-I $(CTL_PKGS)) $(CPPFLAGS)
ctl_libs = $(shell $(PKG_CONFIG) --libs $(CTL_PKGS))

$(BUILD)/obj/ctl/%.o: tools/hamlynctl/%.c $(CTL_HDR)
	@mkdir -p $(@D)
	$(CC) $(ctl_cflags) $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/obj/ctl/lib/%.o: tools/lib/%.c $(CTL_HDR)
	@mkdir -p $(@D)
	$(CC) $(ctl_cflags) $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/hamlynctl: $(CTL_OBJ)
	$(CC) $(CTL_OBJ) $(LDFLAGS) $(ctl_libs) -o $@

# For selftests/tools/hamlynctl-test.sh in the guest: something to administrate, a terminal.
$(BUILD)/hamlynctl-peer: tools/hamlynctl/test/peer.c $(BUILD)/libhamlyn.a $(LIB_HDR)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -static $< $(BUILD)/libhamlyn.a -lpthread -o $@

$(BUILD)/hamlynctl-pty: tools/hamlynctl/test/pty.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -static $< -o $@

# With what run.sh has to put into the guest.
CTL_TEST := $(addprefix $(BUILD)/,hamlynctl hamlynctl-peer hamlynctl-pty)
hamlynctl-test: $(CTL_TEST)

# The whole of hamlynctl with a kernel that is made up.
CTL_UNIT_OBJ := $(CTL_SRC:tools/hamlynctl/%.c=$(BUILD)/obj/ctl-unit/%.o) $(BUILD)/obj/ctl-unit/lib/sock_owner.o
ctl_unit_cflags = $(ctl_cflags) -std=gnu11 -Wall -Wextra -Wshadow -O1 -g $(SANITIZE)

$(BUILD)/obj/ctl-unit/%.o: tools/hamlynctl/%.c $(CTL_HDR)
	@mkdir -p $(@D)
	$(CC) $(ctl_unit_cflags) -Dmain=ctl_main -c $< -o $@

$(BUILD)/obj/ctl-unit/lib/%.o: tools/lib/%.c $(CTL_HDR)
	@mkdir -p $(@D)
	$(CC) $(ctl_unit_cflags) -c $< -o $@

CTL_UNIT := $(addprefix $(BUILD)/unit/unit_,hamlynctl apply top)
CTL_UNIT_SRC := $(addprefix tools/hamlynctl/test/,kernel.c answers.c)
$(CTL_UNIT): $(BUILD)/unit/%: tools/hamlynctl/test/%.c tools/hamlynctl/test/unit.h $(CTL_UNIT_SRC) \
		$(CTL_UNIT_OBJ)
	@mkdir -p $(@D)
	$(CC) $(ctl_unit_cflags) $< $(CTL_UNIT_SRC) $(CTL_UNIT_OBJ) -o $@ $(ctl_libs) -lcmocka \
		-Wl,--wrap=genl_ctrl_resolve,--wrap=nl_send_auto,--wrap=nl_recvmsgs

$(BUILD)/unit/unit_doctor: tools/hamlynctl/test/unit_doctor.c $(CTL_UNIT_OBJ)
	@mkdir -p $(@D)
	$(CC) $(ctl_unit_cflags) $< $(CTL_UNIT_OBJ) -o $@ $(ctl_libs) -lcmocka

$(BUILD)/unit/unit_exporter: tools/hamlynctl/test/unit_exporter.c $(CTL_UNIT_OBJ)
	@mkdir -p $(@D)
	$(CC) $(ctl_unit_cflags) $< $(CTL_UNIT_OBJ) -o $@ $(ctl_libs) -lcmocka \
		-Wl,--wrap=metrics_text,--wrap=clock_gettime,--wrap=recv

units: $(CTL_UNIT) $(addprefix $(BUILD)/unit/unit_,doctor exporter)

install: install-ctl
install-ctl: $(BUILD)/hamlynctl
	install -D -m 755 $(BUILD)/hamlynctl "$(DESTDIR)$(SBINDIR)/hamlynctl"
	install -D -m 644 tools/hamlynctl/hamlynctl.8 "$(DESTDIR)$(MANDIR)/man8/hamlynctl.8"
	install -D -m 644 tools/hamlynctl/hamlynctl.bash-completion \
		"$(DESTDIR)$(COMPLETIONDIR)/hamlynctl"
	install -d "$(DESTDIR)$(DATADIR)/hamlyn/prometheus"
	install -m 644 tools/hamlynctl/prometheus/hamlyn.rules.yml \
		tools/hamlynctl/prometheus/grafana-dashboard.json "$(DESTDIR)$(DATADIR)/hamlyn/prometheus/"

.PHONY: hamlynctl-test install-ctl
